//! Decodes etcd events and key-value pairs into changes of the state.

use etcd_client::proto::{PbEvent, PbKeyValue};
use state::{Change, Key, Table};
use tracing::{debug, warn};

use crate::codec;
use crate::keys::{KeyError, Keyspace};
use crate::replica::metrics::ReplicaMetrics;
use crate::revision;

/// etcd's event type of a deletion.
const DELETE: i32 = 1;

/// Returns the changes of the events of one revision.
///
/// A key of an unknown kind or of a table in `without` is skipped. A value that cannot be decoded is
/// logged and counted, and its object is deleted: so watching and listing lead to the same state.
pub(crate) fn to_changes(
    keyspace: &Keyspace,
    events: Vec<PbEvent>,
    metrics: &ReplicaMetrics,
    without: &[Table],
) -> Vec<Change> {
    let mut changes = Vec::with_capacity(events.len());
    for event in events {
        let Some(kv) = event.kv else { continue };
        let key = read_key(keyspace, &kv, metrics);
        let Some(key) = key.filter(|key| !without.contains(&key.table())) else {
            continue;
        };
        let change = if event.r#type == DELETE {
            Change::Delete { key }
        } else {
            read_value(key, &kv, metrics).unwrap_or_else(|key| Change::Delete { key })
        };
        changes.push(change);
    }
    changes
}

/// Returns the decodable objects of a page.
pub(super) fn to_objects(
    keyspace: &Keyspace,
    page: Vec<PbKeyValue>,
    metrics: &ReplicaMetrics,
    without: &[Table],
) -> Vec<Change> {
    let read = |kv: &PbKeyValue| {
        let key = read_key(keyspace, kv, metrics)?;
        let key = (!without.contains(&key.table())).then_some(key)?;
        read_value(key, kv, metrics).ok()
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
fn read_value(key: Key, kv: &PbKeyValue, metrics: &ReplicaMetrics) -> Result<Change, Key> {
    match codec::decode(&key, &kv.value) {
        Ok(entity) => Ok(Change::Put {
            key,
            entity,
            create_index: revision::from_etcd(kv.create_revision),
            modify_index: revision::from_etcd(kv.mod_revision),
        }),
        Err(error) => {
            metrics.undecodable.inc();
            let text = String::from_utf8_lossy(&kv.key);
            warn!(key = %text, %error, "skipping a value that cannot be decoded");
            Err(key)
        }
    }
}
