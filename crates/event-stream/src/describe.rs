//! The events of one write.
//!
//! An event shows its object as of the write's index, however late it is read: a resumed stream
//! equals one that was read live. A write has one side of an allocation. The other side comes from
//! the replica if it has not changed since, and else from the store's past ([`crate::past`]).
//! Derived values (a job's status, a deployment's counts) are derived from the replica's data of
//! that index.

use std::collections::BTreeSet;

use model::{AllocId, DeploymentId, Indexed, JobKey};
use proto::v1;
use proto::v1::event::Payload;
use state::{Change, Entity, Key, Snapshot};
use store::RevisionChanges;

use crate::kind;
use crate::past;
use crate::written::{PastObjects, alloc_id, alloc_view};

/// Returns the events of a write, in the order of its changes.
///
/// Shape: `snapshot` may be older or newer than the write; it supplies the data that the write does
/// not contain. `past` has the objects that differ in the snapshot, as of the write.
pub fn describe(
    written: &RevisionChanges,
    snapshot: &Snapshot,
    past: &PastObjects,
) -> Vec<v1::Event> {
    let kind = kind::of_write(written);
    let mut allocs = BTreeSet::new();
    let mut events = Vec::new();
    for change in &written.changes {
        let event = match change {
            Change::Put {
                entity: Entity::Alloc(_) | Entity::AllocClient(_),
                key,
                ..
            } => match alloc_id(key) {
                // One event, even if both sides have changed.
                Some(id) if allocs.insert(id) => alloc_event(id, written, snapshot, past),
                _ => None,
            },
            Change::Put {
                entity,
                create_index,
                modify_index,
                ..
            } => put_event(entity, *create_index, *modify_index, written, snapshot),
            Change::Delete { key } => delete_event(key),
        };
        if let Some(mut event) = event {
            event.index = written.revision;
            if event.r#type.is_empty() {
                kind.clone_into(&mut event.r#type);
            }
            events.push(event);
        }
    }
    events
}

fn put_event(
    entity: &Entity,
    create_index: u64,
    modify_index: u64,
    written: &RevisionChanges,
    snapshot: &Snapshot,
) -> Option<v1::Event> {
    fn indexed<T: Clone>(value: &T, create_index: u64, modify_index: u64) -> Indexed<T> {
        Indexed {
            create_index,
            modify_index,
            value: value.clone(),
        }
    }
    Some(match entity {
        Entity::Job(job) => {
            let key = job.key();
            let stored = indexed(&**job, create_index, modify_index);
            let read = past::job_read(written, snapshot, &stored);
            let payload = Payload::Job(v1::Job::from_stored(&stored, read));
            event("Job", key.job_id.to_string(), Some(&key.namespace), payload)
        }
        Entity::Eval(eval) => {
            let stored = indexed(&**eval, create_index, modify_index);
            let payload = Payload::Evaluation((&stored).into());
            let event = event(
                "Evaluation",
                eval.id.to_string(),
                Some(&eval.job.namespace),
                payload,
            );
            of_job(event, &eval.job, eval.deployment_id)
        }
        Entity::Deployment(deployment) => {
            let stored = indexed(&**deployment, create_index, modify_index);
            let payload =
                Payload::Deployment(api_view::deployment_at(snapshot, &stored, modify_index));
            let key = &deployment.job;
            let id = deployment.id.to_string();
            let event = event("Deployment", id, Some(&key.namespace), payload);
            of_job(event, key, None)
        }
        Entity::Node(node) => {
            let stored = indexed(&**node, create_index, modify_index);
            let payload = Payload::Node((&stored).into());
            event("Node", node.id.to_string(), None, payload)
        }
        Entity::NodePool(pool) => {
            let stored = indexed(&**pool, create_index, modify_index);
            let payload = Payload::NodePool((&stored).into());
            event("NodePool", pool.name.clone(), None, payload)
        }
        // Allocations are described above; the rest is internal, or has no event in Nomad either.
        _ => return None,
    })
}

/// Garbage collection has no events; deletions by users have.
fn delete_event(key: &Key) -> Option<v1::Event> {
    let gone = |topic: &str, kind: &str, key: String, namespace: &str| v1::Event {
        topic: topic.to_owned(),
        r#type: kind.to_owned(),
        key,
        namespace: namespace.to_owned(),
        ..v1::Event::default()
    };
    match key {
        Key::Job(key) => Some(gone(
            "Job",
            "JobDeregistered",
            key.job_id.to_string(),
            &key.namespace,
        )),
        Key::Node(id) => Some(gone("Node", "NodeDeregistration", id.to_string(), "")),
        Key::NodePool(name) => Some(gone("NodePool", "NodePoolDeleted", name.clone(), "")),
        _ => None,
    }
}

fn alloc_event(
    id: AllocId,
    written: &RevisionChanges,
    snapshot: &Snapshot,
    past: &PastObjects,
) -> Option<v1::Event> {
    let view = alloc_view(id, written, snapshot, past)?;
    let key = view.alloc.job_key();
    let mut shown = api_view::allocation(snapshot, &view);
    shown.canary = past.is_canary(snapshot, &view);
    let payload = Payload::Allocation(shown);
    let event = event("Allocation", id.to_string(), Some(&key.namespace), payload);
    Some(of_job(event, &key, view.alloc.deployment_id))
}

fn event(topic: &str, key: String, namespace: Option<&str>, payload: Payload) -> v1::Event {
    v1::Event {
        topic: topic.to_owned(),
        key,
        namespace: namespace.unwrap_or_default().to_owned(),
        payload: Some(payload),
        ..v1::Event::default()
    }
}

/// Makes an event selectable by its job and its deployment.
fn of_job(mut event: v1::Event, job: &JobKey, deployment: Option<DeploymentId>) -> v1::Event {
    event.filter_keys.push(job.job_id.to_string());
    event
        .filter_keys
        .extend(deployment.map(|id| id.to_string()));
    event
}
