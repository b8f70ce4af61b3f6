//! The events of one write.
//!
//! What is told is as it was at the write's index, however much later it is asked for: whoever
//! resumes a stream reads what others have read live. A write says one side of an allocation; the
//! other side is the replica's if that has not changed since, and else read from the past
//! ([`super::past`]). What is derived (a job's status, a deployment's counts) is derived from what
//! the replica knows to have been so by then.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{AllocId, DeploymentId, Indexed, JobKey};
use proto::v1;
use proto::v1::event::Payload;
use state::{AllocView, Change, Entity, Key, Snapshot};
use store::Written;

use super::kind;
use super::past::{self, Past};
use crate::reads::view;

/// Returns what a write is told as, in its order.
///
/// Shape: `snapshot` may be older or newer than the write: it is asked for what the write does not
/// say. `past` has what is otherwise in it, or not at all, as it was at the write.
pub fn describe(written: &Written, snapshot: &Snapshot, past: &Past) -> Vec<v1::Event> {
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
                // One event, though both sides have changed.
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

pub(super) fn alloc_id(key: &Key) -> Option<AllocId> {
    match key {
        Key::Alloc(id) | Key::AllocClient(id) => Some(*id),
        _ => None,
    }
}

fn put_event(
    entity: &Entity,
    create_index: u64,
    modify_index: u64,
    written: &Written,
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
            let payload = Payload::Deployment(view::deployment_at(snapshot, &stored, modify_index));
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
        // Theirs are told above; the rest are not for users, or not told by Nomad either.
        _ => return None,
    })
}

/// What is collected is not told, only what users delete.
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
    written: &Written,
    snapshot: &Snapshot,
    past: &Past,
) -> Option<v1::Event> {
    let view = alloc_view(id, written, snapshot, past)?;
    let key = view.alloc.job_key();
    let mut shown = view::allocation(snapshot, &view);
    shown.canary = past.is_canary(snapshot, &view);
    let payload = Payload::Allocation(shown);
    let event = event("Allocation", id.to_string(), Some(&key.namespace), payload);
    Some(of_job(event, &key, view.alloc.deployment_id))
}

/// Returns an allocation as it was when `written` was.
pub(super) fn alloc_view(
    id: AllocId,
    written: &Written,
    snapshot: &Snapshot,
    past: &Past,
) -> Option<AllocView> {
    let known = if past::is_created(written, id) {
        // Nobody has told anything of it yet.
        None
    } else {
        past.allocs.get(&id).or_else(|| snapshot.alloc(id)).cloned()
    };
    overlay(id, written, known)
}

/// Lays the sides that were written over what is known of an allocation.
fn overlay(id: AllocId, written: &Written, known: Option<AllocView>) -> Option<AllocView> {
    let mut view = known;
    for change in &written.changes {
        let Change::Put {
            key,
            entity,
            create_index,
            modify_index,
        } = change
        else {
            continue;
        };
        match entity {
            Entity::Alloc(alloc) if alloc_id(key) == Some(id) => {
                let alloc = Arc::new(alloc.as_ref().clone());
                let view = view.get_or_insert_with(|| AllocView {
                    alloc: Arc::clone(&alloc),
                    create_index: *create_index,
                    alloc_modify_index: *modify_index,
                    client: None,
                    client_modify_index: 0,
                });
                view.alloc = alloc;
                view.alloc_modify_index = *modify_index;
            }
            Entity::AllocClient(client) if alloc_id(key) == Some(id) => {
                let view = view.as_mut()?;
                view.client = Some(Arc::new(client.as_ref().clone()));
                view.client_modify_index = *modify_index;
            }
            _ => {}
        }
    }
    view
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

/// Lets an event be asked for by its job and its deployment.
fn of_job(mut event: v1::Event, job: &JobKey, deployment: Option<DeploymentId>) -> v1::Event {
    event.filter_keys.push(job.job_id.to_string());
    event
        .filter_keys
        .extend(deployment.map(|id| id.to_string()));
    event
}
