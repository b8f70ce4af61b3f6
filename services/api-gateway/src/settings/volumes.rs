//! Volumes: registered, deleted, and set free of claims.
//!
//! **Invariant**: a plan that places an allocation with a volume compares the volume's key. So a
//! volume is deleted in two steps, as a node pool is: first it is marked, which makes every plan fail
//! that was made before, and later ones leave it alone; then, in a snapshot that shows the mark,
//! nobody uses it who will not be seen. For the same reason a registration can only add ways of use
//! to a volume that is there: whatever it took away, somebody might be about to count on.

use std::fmt;

use model::{
    EvalId, Evaluation, FieldErrors, Indexed, Job, JobType, Timestamp, TriggeredBy, Volume,
    VolumeClaim, VolumeClaimId, VolumeId, VolumeKey,
};
use placement::{Scope, volumes};
use state::{Entity, Key, Snapshot};

use super::namespaces;
use crate::writes::Write;

/// How many allocations that stand in the way are named.
const MAX_NAMED: usize = 5;
/// How many claims go with a volume in its transaction; the cluster-controller deletes the others.
const MAX_CLAIMS: usize = 500;
/// How many system jobs are looked at because of a new volume; with the volume well below a
/// transaction's 1,000 operations. The others see it with the next change of the node.
const MAX_EVALS: usize = 500;

/// Why a volume stays as it is. Final only when the snapshot was as new as the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    /// Source: Nomad's text, as far as the comma.
    #[error("volume in use: {name}, by allocations {}", Named(.allocs))]
    InUse { name: String, allocs: Vec<String> },
}

/// Lists the first few.
struct Named<'a>(&'a [String]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// What is drawn and told once for a request.
#[derive(Clone, Debug)]
pub struct Stamp {
    pub id: VolumeId,
    pub now: Timestamp,
    pub trace_parent: String,
}

/// What registering a volume comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// So it is already.
    Unchanged(Box<Indexed<Volume>>),
    /// The volume as it will be, and what is written.
    Write {
        volume: Box<Volume>,
        writes: Vec<Write>,
    },
}

/// Decides on registering a volume. `next_id` is called once for each evaluation.
///
/// # Errors
/// There is no such node, or its configuration has a volume of that name, or a volume of that name
/// there is another.
pub fn register(
    snapshot: &Snapshot,
    wanted: &Volume,
    stamp: &Stamp,
    mut next_id: impl FnMut() -> EvalId,
) -> Result<Change, Refusal> {
    let mut errors = FieldErrors::default();
    let name = &wanted.name;
    match snapshot.node(wanted.node_id) {
        None => errors.push(
            "volume.node_id",
            format!(
                "there is no node {}: want one of 'kafila node status -verbose'",
                wanted.node_id
            ),
        ),
        Some(node) if node.value.host_volumes.contains_key(name) => errors.push(
            "volume.name",
            format!(
                "node {:?} has a host volume {name:?} in its configuration: want another name",
                node.value.name
            ),
        ),
        Some(_) => {}
    }
    let who = format!("volume {name:?}");
    let join = namespaces::join(snapshot, &wanted.namespace, "volume.namespace", who);
    let join = join.unwrap_or_else(|found| {
        errors.0.extend(found.0);
        None
    });
    let key = wanted.key();
    let stored = snapshot.volume(&key);
    if let Some(problem) = id_problem(wanted, stored.map(|stored| stored.value.id)) {
        errors.push("volume.id", problem);
    }
    if let Some(stored) = stored {
        check_change(&stored.value, wanted, &mut errors);
    }
    errors.into_result(())?;
    let (volume, write) = match stored {
        Some(stored) => {
            let old = &stored.value;
            if old.capabilities == wanted.capabilities && !old.deleting {
                return Ok(Change::Unchanged(Box::new(Indexed::clone(stored))));
            }
            let volume = Volume {
                id: old.id,
                create_time: old.create_time,
                modify_time: stamp.now,
                deleting: false,
                ..wanted.clone()
            };
            let entity = Entity::Volume(Box::new(volume.clone()));
            let modify_index = stored.modify_index;
            let write = Write::Update {
                key: Key::Volume(key),
                modify_index,
                entity,
            };
            (volume, write)
        }
        None => {
            let volume = Volume {
                id: stamp.id,
                create_time: stamp.now,
                modify_time: stamp.now,
                deleting: false,
                ..wanted.clone()
            };
            let entity = Entity::Volume(Box::new(volume.clone()));
            let key = Key::Volume(key);
            (volume, Write::Create { key, entity })
        }
    };
    let mut writes = vec![write];
    writes.extend(join);
    let jobs = wanted_everywhere(snapshot, &volume).take(MAX_EVALS);
    writes.extend(jobs.map(|job| {
        let mut eval = pending(job, TriggeredBy::NodeUpdate, next_id(), stamp);
        eval.node_id = Some(volume.node_id);
        create_eval(eval)
    }));
    Ok(Change::Write {
        volume: Box::new(volume),
        writes,
    })
}

fn id_problem(wanted: &Volume, stored: Option<VolumeId>) -> Option<String> {
    if wanted.id == VolumeId::default() || stored == Some(wanted.id) {
        return None;
    }
    Some(match stored {
        Some(stored) => format!(
            "the volume {:?} of this node has the id {stored}: want that, or none",
            wanted.name
        ),
        None => "there is no such volume on this node yet: want none, one is made".to_owned(),
    })
}

/// Looks whether everything that somebody may count on stays.
fn check_change(old: &Volume, new: &Volume, errors: &mut FieldErrors) {
    if old.host_path != new.host_path {
        errors.push(
            "volume.host_path",
            format!(
                "the volume is at {:?}: delete it and register it anew, or want another name",
                old.host_path
            ),
        );
    }
    let mut capabilities = old.capabilities.iter();
    if !capabilities.all(|capability| new.allows(*capability)) {
        errors.push(
            "volume.capability",
            "one that the volume has is not among them: want those and more, or delete the volume \
             and register it anew",
        );
    }
}

/// Returns the jobs that run on every node and may do so where the volume is, now that it is there.
fn wanted_everywhere<'s>(
    snapshot: &'s Snapshot,
    volume: &'s Volume,
) -> impl Iterator<Item = &'s Job> {
    let node = snapshot.node(volume.node_id);
    let jobs = snapshot.jobs().map(|job| &job.value);
    jobs.filter(move |job| {
        let mut asks = job.task_groups.iter().flat_map(|it| it.volumes.values());
        matches!(job.job_type, JobType::System | JobType::Sysbatch)
            && !job.stop
            && job.namespace == volume.namespace
            && asks.any(|ask| ask.source == volume.name)
            && node.is_some_and(|node| Scope::new(job).contains(&node.value))
    })
}

fn pending(job: &Job, trigger: TriggeredBy, id: EvalId, stamp: &Stamp) -> Evaluation {
    let (job_type, priority) = (job.job_type, job.priority);
    let mut eval = Evaluation::pending(id, job.key(), job_type, priority, trigger, stamp.now);
    eval.trace_parent.clone_from(&stamp.trace_parent);
    eval
}

fn create_eval(eval: Evaluation) -> Write {
    Write::Create {
        key: Key::Eval(eval.id),
        entity: Entity::Eval(Box::new(eval)),
    }
}

/// The next step of a deletion.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion {
    /// To be decided on again once this is written.
    Mark(Write),
    /// The volume, and what claims it.
    Delete(Vec<Write>),
    /// Refused after all; this takes the mark back.
    TakeBack { write: Write, refusal: Refusal },
}

/// Decides on the next step of deleting a volume; `None`: there is none of that name.
///
/// # Errors
/// Somebody uses it.
pub fn delete(snapshot: &Snapshot, key: &VolumeKey) -> Result<Option<Deletion>, Refusal> {
    let Some(stored) = snapshot.volume(key) else {
        return Ok(None);
    };
    let is_marked = stored.value.deleting;
    Ok(Some(match in_use(snapshot, &stored.value) {
        None if is_marked => Deletion::Delete(deletions(snapshot, stored)),
        None => Deletion::Mark(marked(stored, true)),
        Some(refusal) if is_marked => Deletion::TakeBack {
            write: marked(stored, false),
            refusal,
        },
        Some(refusal) => return Err(refusal),
    }))
}

fn in_use(snapshot: &Snapshot, volume: &Volume) -> Option<Refusal> {
    let users = volumes::users(snapshot, volume).take(MAX_NAMED);
    let allocs: Vec<String> = users.map(|view| view.alloc.id.to_string()).collect();
    let name = volume.name.clone();
    (!allocs.is_empty()).then_some(Refusal::InUse { name, allocs })
}

fn deletions(snapshot: &Snapshot, stored: &Indexed<Volume>) -> Vec<Write> {
    let volume = &stored.value;
    let claims = snapshot.volume_claims();
    let claims = claims.filter(|claim| claim.value.volume_id == volume.id);
    let claims = claims.take(MAX_CLAIMS).map(|claim| delete_claim(claim));
    let write = Write::Delete {
        key: Key::Volume(volume.key()),
        modify_index: stored.modify_index,
    };
    [write].into_iter().chain(claims).collect()
}

fn marked(stored: &Indexed<Volume>, deleting: bool) -> Write {
    let volume = Volume {
        deleting,
        ..stored.value.clone()
    };
    Write::Update {
        key: Key::Volume(volume.key()),
        modify_index: stored.modify_index,
        entity: Entity::Volume(Box::new(volume)),
    }
}

/// Deletes a claim unless it has changed.
pub(crate) fn delete_claim(claim: &Indexed<VolumeClaim>) -> Write {
    Write::Delete {
        key: Key::VolumeClaim(claim.value.id()),
        modify_index: claim.modify_index,
    }
}

/// Decides on setting a group free of a claim: its job is looked at, which may have waited for this.
/// `None`: there is no such claim.
pub fn free(
    snapshot: &Snapshot,
    id: VolumeClaimId,
    eval_id: EvalId,
    stamp: &Stamp,
) -> Option<Vec<Write>> {
    let claim = snapshot.volume_claim(id)?;
    let mut writes = vec![delete_claim(claim)];
    let job = snapshot.job(&claim.value.job_key()).map(|job| &job.value);
    if let Some(job) = job.filter(|job| !job.stop) {
        let eval = pending(job, TriggeredBy::QueuedAllocs, eval_id, stamp);
        writes.push(create_eval(eval));
    }
    Some(writes)
}

#[cfg(test)]
mod tests {
    use model::job::{VolumeRequest, VolumeType};
    use model::node::HostVolume;
    use model::{AccessMode, AllocId, AttachmentMode, Capability, ClientStatus, JobKey, NodeId};
    use test_kit::builders;

    use super::*;
    use crate::testing::Stored;

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

    fn stamp(number: u128) -> Stamp {
        Stamp {
            id: VolumeId::from_random(number),
            now: Timestamp(7),
            trace_parent: "trace".into(),
        }
    }

    fn decide(stored: &Stored, wanted: &Volume, number: u128) -> Result<Change, Refusal> {
        let mut evals = 0;
        register(&stored.snapshot(), wanted, &stamp(number), || {
            evals += 1;
            EvalId::from_random(evals)
        })
    }

    fn fields(refusal: Refusal) -> Vec<String> {
        let Refusal::Invalid(errors) = refusal else {
            panic!("{refusal}");
        };
        errors.0.into_iter().map(|error| error.field).collect()
    }

    /// Registers the volume; returns it as it is stored.
    fn put(stored: &mut Stored, wanted: &Volume) -> Volume {
        let change = decide(stored, wanted, 1).unwrap();
        let Change::Write { volume, .. } = change else {
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
        assert_eq!(volume.id, stamp(1).id);
        assert_eq!(
            (volume.create_time, volume.modify_time),
            (Timestamp(7), Timestamp(7))
        );
        // Asked again, by whatever name.
        for id in [VolumeId::default(), volume.id] {
            let again = decide(&stored, &Volume { id, ..wanted() }, 2).unwrap();
            let Change::Unchanged(same) = again else {
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
    fn system_jobs_that_ask_for_it_are_looked_at() {
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
        let Change::Write { writes, .. } = decide(&stored, &wanted(), 1).unwrap() else {
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
        // Told to stop is not gone.
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
            panic!("nobody uses it");
        };
        let keys: Vec<&Key> = writes.iter().map(Write::key).collect();
        assert_eq!(
            keys,
            [&Key::Volume(key.clone()), &Key::VolumeClaim(claim.id())]
        );
        // Somebody came between the steps.
        let job = asking(builders::service("web", 1));
        stored.put_alloc(&builders::allocation(2, &job, volume.node_id));
        let Some(Deletion::TakeBack { write, refusal }) = delete(&stored.snapshot(), &key).unwrap()
        else {
            panic!("it is used");
        };
        assert!(matches!(refusal, Refusal::InUse { .. }));
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
    fn who_is_set_free_of_a_claim_is_looked_at() {
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
        let free =
            |stored: &Stored| super::free(&stored.snapshot(), claim.id(), eval_id, &stamp(1));
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
}
