//! Volumes registered, deleted and released.

use model::job::{VolumeRequest, VolumeType};
use model::node::HostVolume;
use model::{
    AccessMode, AllocId, AttachmentMode, Capability, ClientStatus, EvalId, Job, JobKey, JobType,
    NodeId, Timestamp, TriggeredBy, Volume, VolumeClaim, VolumeId,
};
use state::{Entity, Key, Write};
use test_kit::{Stored, builders};

use super::*;
use crate::cluster::change::VolumeRegistration;
use crate::cluster::deletion::Deletion;

fn capability(access_mode: AccessMode) -> Capability {
    Capability {
        access_mode,
        attachment_mode: AttachmentMode::FileSystem,
    }
}

fn wanted() -> Volume {
    Volume {
        namespace: "default".into(),
        name: "data".into(),
        node_id: builders::node(1).id,
        id: VolumeId::default(),
        host_path: "/srv/data".into(),
        capabilities: vec![capability(AccessMode::SingleNodeWriter)],
        deleting: false,
        create_time: Timestamp::NEVER,
        modify_time: Timestamp::NEVER,
    }
}

fn context(number: u128) -> VolumeContext {
    VolumeContext {
        id: VolumeId::from_random(number),
        now: Timestamp(7),
        trace_parent: "trace".into(),
    }
}

fn decide(
    stored: &Stored,
    wanted: &Volume,
    number: u128,
) -> Result<VolumeRegistration<Volume>, VolumeRefusal> {
    let mut evals = 0;
    register(&stored.snapshot(), wanted, &context(number), || {
        evals += 1;
        EvalId::from_random(evals)
    })
}

fn fields(refusal: VolumeRefusal) -> Vec<String> {
    let VolumeRefusal::Invalid(errors) = refusal else {
        panic!("{refusal}");
    };
    errors.0.into_iter().map(|error| error.field).collect()
}

/// Registers the volume; returns it as it is stored.
fn put(stored: &mut Stored, wanted: &Volume) -> Volume {
    let change = decide(stored, wanted, 1).unwrap();
    let VolumeRegistration::Write { volume, .. } = change else {
        panic!("{change:?}");
    };
    let entity = Entity::Volume(volume.clone());
    stored.put(Key::Volume(volume.key()), entity);
    *volume
}

fn asking(mut job: Job) -> Job {
    let ask = VolumeRequest {
        volume_type: VolumeType::Host,
        source: "data".into(),
        read_only: false,
        sticky: true,
        per_alloc: false,
        access_mode: None,
        attachment_mode: None,
        mount_options: Default::default(),
    };
    job.task_groups[0].volumes.insert("data".into(), ask);
    job
}

#[test]
fn a_volume_is_registered_once_and_only_ever_allows_more() {
    let mut stored = Stored::default();
    let refusal = decide(&stored, &wanted(), 1).unwrap_err();
    assert_eq!(fields(refusal), ["volume.node_id"]);
    stored.put_node(&builders::node(1));
    let volume = put(&mut stored, &wanted());
    assert_eq!(volume.id, context(1).id);
    assert_eq!(
        (volume.create_time, volume.modify_time),
        (Timestamp(7), Timestamp(7))
    );
    // The same request again, with or without the id.
    for id in [VolumeId::default(), volume.id] {
        let again = decide(&stored, &Volume { id, ..wanted() }, 2).unwrap();
        let VolumeRegistration::Unchanged(same) = again else {
            panic!("{again:?}");
        };
        assert_eq!(same.value, volume);
    }
    let more = Volume {
        capabilities: vec![
            capability(AccessMode::SingleNodeMultiWriter),
            capability(AccessMode::SingleNodeWriter),
        ],
        ..wanted()
    };
    let widened = put(&mut stored, &more);
    assert_eq!((widened.id, widened.capabilities.len()), (volume.id, 2));
    for (wrong, field) in [
        (wanted(), "volume.capability"),
        (
            Volume {
                host_path: "/srv/else".into(),
                ..more.clone()
            },
            "volume.host_path",
        ),
        (
            Volume {
                id: VolumeId::from_random(9),
                ..more
            },
            "volume.id",
        ),
    ] {
        assert_eq!(fields(decide(&stored, &wrong, 3).unwrap_err()), [field]);
    }
    let unknown = Volume {
        id: VolumeId::from_random(9),
        name: "new".into(),
        ..wanted()
    };
    assert_eq!(
        fields(decide(&stored, &unknown, 3).unwrap_err()),
        ["volume.id"]
    );
}

#[test]
fn a_name_of_the_nodes_configuration_is_taken() {
    let mut stored = Stored::default();
    let mut node = builders::node(1);
    node.host_volumes
        .insert("data".into(), HostVolume::default());
    stored.put_node(&node);
    let refusal = decide(&stored, &wanted(), 1).unwrap_err();
    assert_eq!(fields(refusal), ["volume.name"]);
}

#[test]
fn system_jobs_that_ask_for_it_are_evaluated() {
    let mut stored = Stored::default();
    stored.put_node(&builders::node(1));
    let job = |id: &str, job_type: JobType| {
        let mut job = asking(builders::service(id, 1));
        job.job_type = job_type;
        job
    };
    stored.put_job(&job("every", JobType::System));
    stored.put_job(&job("once", JobType::Sysbatch));
    stored.put_job(&job("plain", JobType::Service));
    let mut elsewhere = job("elsewhere", JobType::System);
    elsewhere.datacenters = vec!["dc9".into()];
    stored.put_job(&elsewhere);
    let mut stopped = job("stopped", JobType::System);
    stopped.stop = true;
    stored.put_job(&stopped);
    let VolumeRegistration::Write { writes, .. } = decide(&stored, &wanted(), 1).unwrap() else {
        panic!("it is new");
    };
    let evals = writes.iter().filter_map(|write| match write {
        Write::Create {
            entity: Entity::Eval(eval),
            ..
        } => Some((&*eval.job.job_id, eval.node_id)),
        _ => None,
    });
    let node_id = Some(builders::node(1).id);
    assert_eq!(
        evals.collect::<Vec<_>>(),
        [("every", node_id), ("once", node_id)]
    );
}

fn running(stored: &mut Stored, node_id: NodeId) -> AllocId {
    let job = asking(builders::service("web", 1));
    stored.put_job(&job);
    let alloc = builders::allocation(1, &job, node_id);
    stored.put_alloc(&alloc);
    alloc.id
}

#[test]
fn a_volume_is_marked_before_it_goes_with_its_claims_and_never_while_it_is_used() {
    let mut stored = Stored::default();
    stored.put_node(&builders::node(1));
    let volume = put(&mut stored, &wanted());
    let key = volume.key();
    let alloc_id = running(&mut stored, volume.node_id);
    let claim = VolumeClaim {
        namespace: "default".into(),
        job_id: "web".into(),
        task_group: "web".into(),
        alloc_id,
        volume_id: volume.id,
        volume_name: "data".into(),
        node_id: volume.node_id,
    };
    let claimed = Entity::VolumeClaim(Box::new(claim.clone()));
    stored.put(Key::VolumeClaim(claim.id()), claimed);
    let refusal = delete(&stored.snapshot(), &key).unwrap_err();
    let want = format!("volume in use: data, by allocations {alloc_id}");
    assert_eq!(refusal.to_string(), want);
    // It ends on its node.
    stored.put_status(alloc_id, ClientStatus::Complete);
    let Some(Deletion::Mark(Write::Update { entity, .. })) =
        delete(&stored.snapshot(), &key).unwrap()
    else {
        panic!("it is to be marked");
    };
    let Entity::Volume(marked) = &entity else {
        panic!("{entity:?}");
    };
    assert!(marked.deleting);
    stored.put(Key::Volume(key.clone()), entity);
    let Some(Deletion::Delete(writes)) = delete(&stored.snapshot(), &key).unwrap() else {
        panic!("no allocation uses it");
    };
    let keys: Vec<&Key> = writes.iter().map(Write::key).collect();
    assert_eq!(
        keys,
        [&Key::Volume(key.clone()), &Key::VolumeClaim(claim.id())]
    );
    // An allocation was placed between the steps.
    let job = asking(builders::service("web", 1));
    stored.put_alloc(&builders::allocation(2, &job, volume.node_id));
    let Some(Deletion::TakeBack { write, refusal }) = delete(&stored.snapshot(), &key).unwrap()
    else {
        panic!("it is used");
    };
    assert!(matches!(refusal, VolumeRefusal::InUse { .. }));
    let Write::Update {
        entity: Entity::Volume(back),
        ..
    } = write
    else {
        panic!("{write:?}");
    };
    assert!(!back.deleting);
    stored.delete(Key::Volume(key.clone()));
    assert_eq!(delete(&stored.snapshot(), &key), Ok(None));
}

#[test]
fn the_job_of_a_released_claim_is_evaluated() {
    let mut stored = Stored::default();
    let claim = VolumeClaim {
        namespace: "default".into(),
        job_id: "web".into(),
        task_group: "web".into(),
        alloc_id: AllocId::from_random(1),
        volume_id: VolumeId::from_random(1),
        volume_name: "data".into(),
        node_id: builders::node(1).id,
    };
    let eval_id = EvalId::from_random(1);
    let free = |stored: &Stored| release(&stored.snapshot(), claim.id(), eval_id, &context(1));
    assert_eq!(free(&stored), None);
    let entity = Entity::VolumeClaim(Box::new(claim.clone()));
    stored.put(Key::VolumeClaim(claim.id()), entity);
    assert_eq!(free(&stored).unwrap().len(), 1, "its job is gone");
    stored.put_job(&builders::service("web", 1));
    let writes = free(&stored).unwrap();
    let Write::Create {
        entity: Entity::Eval(eval),
        ..
    } = &writes[1]
    else {
        panic!("{writes:?}");
    };
    assert_eq!(eval.job, JobKey::new("default", "web"));
    assert_eq!(eval.triggered_by, TriggeredBy::QueuedAllocs);
}
