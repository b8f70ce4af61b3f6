//! Registered volumes: a single writer across plans, compares of the volume, and claims.

use std::sync::Arc;

use applier::{Applier, Event, Piece, PlanVerification, Ticket, Verification, verify};
use model::job::{VolumeRequest, VolumeType};
use model::{
    AccessMode, AllocId, AttachmentMode, Capability, Job, NodeId, Plan, Timestamp, Volume, VolumeId,
};
use placement::VolumeAsks;
use state::{Entity, Key, Write};
use test_kit::builders;

use crate::store::{NOW, Store, stop};

fn volume(node_id: NodeId) -> Volume {
    Volume {
        namespace: "default".into(),
        name: "data".into(),
        node_id,
        id: VolumeId::from_random(7),
        host_path: "/srv/data".into(),
        capabilities: vec![Capability {
            access_mode: AccessMode::SingleNodeSingleWriter,
            attachment_mode: AttachmentMode::FileSystem,
        }],
        deleting: false,
        create_time: Timestamp(1),
        modify_time: Timestamp(1),
    }
}

fn put(store: &mut Store, volume: &Volume) {
    let entity = Entity::Volume(Box::new(volume.clone()));
    store.put(Key::Volume(volume.key()), entity);
}

/// Registers a job with a single-writer volume request.
fn register(store: &mut Store, name: &str, sticky: bool) {
    let mut job: Job = builders::service(name, 10);
    let request = VolumeRequest {
        volume_type: VolumeType::Host,
        source: "data".into(),
        read_only: false,
        sticky,
        per_alloc: false,
        access_mode: Some(AccessMode::SingleNodeSingleWriter),
        attachment_mode: None,
        mount_options: Default::default(),
    };
    job.task_groups[0].volumes.insert("data".into(), request);
    let entity = Entity::JobVersion(Box::new(job.clone()));
    store.put(Key::JobVersion(job.key(), 0), entity);
    store.put(Key::Job(job.key()), Entity::Job(Box::new(job)));
}

fn rejected(store: &Store, plan: &Plan) -> Option<String> {
    match verify(&store.snapshot(), plan, NOW) {
        PlanVerification::Accepted(accepted) => accepted.rejected_nodes.into_values().next(),
        other => panic!("{other:?}"),
    }
}

fn start(sticky: bool) -> (Store, NodeId) {
    let mut store = Store::new(1);
    let node = store.add_node(1, |_| {});
    put(&mut store, &volume(node));
    for name in ["one", "two"] {
        register(&mut store, name, sticky);
    }
    (store, node)
}

#[test]
fn two_concurrent_plans_do_not_share_a_single_writer_volume() {
    let (mut store, node) = start(false);
    let (mut first, mut second) = (store.start_plan("one"), store.start_plan("two"));
    store.place(&mut first, node, 1);
    store.place(&mut second, node, 1);
    // Each is accepted by itself.
    assert_eq!(
        (rejected(&store, &first), rejected(&store, &second)),
        (None, None)
    );
    let mut applier = Applier::new(0);
    let mut rejections = Vec::new();
    for (ticket, plan) in [(1, first), (2, second)] {
        let plan = Box::new(plan);
        let event = Event::Submit {
            ticket: Ticket(ticket),
            plan,
        };
        let mut effects = applier.step(&store.snapshot(), event);
        while let Some(effect) = effects.pop() {
            let applier::Effect::Verify {
                ticket,
                plan,
                pending,
            } = effect
            else {
                continue;
            };
            let snapshot = store.snapshot();
            let verification = Verification::new(&snapshot, &pending, &plan);
            let verdicts = verification.nodes().into_iter();
            let verdicts = verdicts.map(|node| verification.check_node(node)).collect();
            let verdict = verification.conclude(verdicts, NOW);
            if let PlanVerification::Accepted(accepted) = &verdict {
                rejections.push(accepted.rejected_nodes.clone());
            }
            effects.extend(applier.step(&snapshot, Event::Verified { ticket, verdict }));
        }
    }
    // Nothing is committed: the second was checked against the pending write.
    let conflict = VolumeAsks::CONFLICT.to_owned();
    assert_eq!(rejections, [[].into(), [(node, conflict)].into()]);
}

#[test]
fn one_plan_does_not_place_two_single_writers() {
    let (mut store, node) = start(false);
    let mut plan = store.start_plan("one");
    store.place(&mut plan, node, 1);
    store.place(&mut plan, node, 1);
    assert_eq!(
        rejected(&store, &plan).as_deref(),
        Some(VolumeAsks::CONFLICT)
    );
}

#[test]
fn a_replacement_writes_after_its_predecessor() {
    let (mut store, node) = start(false);
    let old = store.running("one", node, 1);
    let replacing = |store: &mut Store, name: &str, previous: AllocId| {
        let mut plan = store.start_plan(name);
        store.place(&mut plan, node, 1);
        plan.stops.insert(node, vec![stop(old)]);
        plan.placements.get_mut(&node).unwrap()[0].previous_alloc = Some(previous);
        plan
    };
    let plan = replacing(&mut store, "one", old);
    assert_eq!(rejected(&store, &plan), None);
    // The same stop does not free the volume for others until the process has ended.
    let another = store.ids.alloc();
    let plan = replacing(&mut store, "one", another);
    assert_eq!(
        rejected(&store, &plan).as_deref(),
        Some(VolumeAsks::CONFLICT)
    );
}

#[test]
fn a_volume_that_has_changed_or_gone_refuses_the_placement() {
    let (mut store, node) = start(false);
    let mut plan = store.start_plan("one");
    store.place(&mut plan, node, 1);
    let PlanVerification::Accepted(accepted) = verify(&store.snapshot(), &plan, NOW) else {
        panic!("it is accepted");
    };
    // It is marked for deletion after the verification.
    let marked = Volume {
        deleting: true,
        ..volume(node)
    };
    put(&mut store, &marked);
    let pieces: Vec<Arc<Piece>> = accepted.pieces;
    assert!(store.commit(&pieces).is_err(), "it compares the volume");
    assert_eq!(rejected(&store, &plan).as_deref(), Some(VolumeAsks::REASON));
    store.delete(Key::Volume(volume(node).key()));
    assert_eq!(rejected(&store, &plan).as_deref(), Some(VolumeAsks::REASON));
}

#[test]
fn a_group_claims_its_volume_once_in_the_transaction_that_places_it() {
    let (mut store, node) = start(true);
    let id = store.running("one", node, 1);
    let claims: Vec<_> = store
        .snapshot()
        .volume_claims()
        .map(|claim| (claim.value.clone(), claim.create_index))
        .collect();
    let [(claim, create_index)] = claims.as_slice() else {
        panic!("{claims:?}");
    };
    assert_eq!((claim.alloc_id, claim.volume_id), (id, volume(node).id));
    assert_eq!((&*claim.job_id, &*claim.task_group), ("one", "web"));
    assert_eq!(
        *create_index,
        store.snapshot().alloc(id).unwrap().create_index
    );
    // Its successor finds it claimed.
    let mut plan = store.start_plan("one");
    store.place(&mut plan, node, 1);
    plan.stops.insert(node, vec![stop(id)]);
    plan.placements.get_mut(&node).unwrap()[0].previous_alloc = Some(id);
    let PlanVerification::Accepted(accepted) = verify(&store.snapshot(), &plan, NOW) else {
        panic!("it is accepted");
    };
    let ops: Vec<&Write> = accepted.pieces.iter().flat_map(|it| &it.ops).collect();
    let is_claim = |op: &&&Write| matches!(op.key(), Key::VolumeClaim(_));
    assert_eq!(ops.iter().filter(is_claim).count(), 0);
    store.must_commit(&plan);
    assert_eq!(store.snapshot().volume_claims().count(), 1);
}
