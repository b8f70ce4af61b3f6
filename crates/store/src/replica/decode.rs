//! Decodes etcd events and key-value pairs into changes of the state.

use etcd_client::proto::{PbEvent, PbKeyValue};
use state::{Change, Entity, Key};
use tracing::{debug, warn};

use crate::codec;
use crate::keys::{KeyError, Keyspace};
use crate::replica::metrics::ReplicaMetrics;
use crate::replica::options::Interest;
use crate::revision;

/// etcd's event type of a deletion.
const DELETE: i32 = 1;

/// Returns the changes of the events of one revision.
///
/// A key of an unknown kind or beyond `interest` is skipped. A value that cannot be decoded is
/// logged and counted, and its object is deleted: so watching and listing lead to the same state.
///
/// A job comes with its version, whose value is the same: it is decoded once.
pub(crate) fn to_changes(
    keyspace: &Keyspace,
    events: Vec<PbEvent>,
    metrics: &ReplicaMetrics,
    interest: Interest,
) -> Vec<Change> {
    let mut changes = Vec::with_capacity(events.len());
    let mut last_job = Vec::new();
    for event in events {
        let Some(mut kv) = event.kv else { continue };
        let key = read_key(keyspace, &kv, metrics);
        let Some(key) = key.filter(|key| interest.includes(key)) else {
            continue;
        };
        let is_job = matches!(key, Key::Job(_) | Key::JobVersion(..));
        let change = if event.r#type == DELETE {
            Change::Delete { key }
        } else if is_job
            && kv.value == last_job
            && let Some(entity) = changes.last().and_then(|last| same_job(&key, last))
        {
            to_put(key, entity, &kv)
        } else {
            read_value(key, &kv, metrics, interest).unwrap_or_else(|key| Change::Delete { key })
        };
        changes.push(change);
        last_job.clear();
        if is_job {
            last_job = std::mem::take(&mut kv.value);
        }
    }
    changes
}

/// Returns the job of the previous change as the object of `key`.
fn same_job(key: &Key, last: &Change) -> Option<Entity> {
    let Change::Put {
        entity: Entity::Job(job) | Entity::JobVersion(job),
        ..
    } = last
    else {
        return None;
    };
    match key {
        Key::Job(_) => Some(Entity::Job(job.clone())),
        Key::JobVersion(..) => Some(Entity::JobVersion(job.clone())),
        _ => None,
    }
}

fn to_put(key: Key, entity: Entity, kv: &PbKeyValue) -> Change {
    Change::Put {
        key,
        entity,
        create_index: revision::from_etcd(kv.create_revision),
        modify_index: revision::from_etcd(kv.mod_revision),
    }
}

/// Returns the decodable objects of a page.
pub(super) fn to_objects(
    keyspace: &Keyspace,
    page: Vec<PbKeyValue>,
    metrics: &ReplicaMetrics,
    interest: Interest,
) -> Vec<Change> {
    let read = |kv: &PbKeyValue| {
        let key = read_key(keyspace, kv, metrics)?;
        let key = interest.includes(&key).then_some(key)?;
        read_value(key, kv, metrics, interest).ok()
    };
    page.iter().filter_map(read).collect()
}

fn read_key(keyspace: &Keyspace, kv: &PbKeyValue, metrics: &ReplicaMetrics) -> Option<Key> {
    match keyspace.decode(&kv.key) {
        Ok(key) => Some(key),
        Err(error @ KeyError::Foreign(_)) => {
            debug!(%error, "skipping a key of an unknown kind");
            None
        }
        Err(error @ KeyError::Malformed(_)) => {
            metrics.undecodable.inc();
            warn!(%error, "skipping a key that cannot be decoded");
            None
        }
    }
}

/// Returns the key when its value cannot be decoded.
fn read_value(
    key: Key,
    kv: &PbKeyValue,
    metrics: &ReplicaMetrics,
    interest: Interest,
) -> Result<Change, Key> {
    match codec::decode(&key, &kv.value) {
        Ok(mut entity) => {
            interest.strip(&mut entity);
            Ok(to_put(key, entity, kv))
        }
        Err(error) => {
            metrics.undecodable.inc();
            let text = String::from_utf8_lossy(&kv.key);
            warn!(key = %text, %error, "skipping a value that cannot be decoded");
            Err(key)
        }
    }
}
