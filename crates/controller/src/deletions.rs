//! Deletion timeouts: namespaces, node pools and volumes whose deletion was started and never
//! finished.
//!
//! A gateway marks such an object before it deletes it, so that no job joins it in between. The
//! gateway may die after the mark. Its caller has no answer then, so the mark is removed: the
//! object can be used again, and deleted again. To finish the deletion instead, this crate would
//! need the gateway's checks for users of each kind of object.
//!
//! Pure: it remembers only when it first saw each mark. A new leader starts over, which gives the
//! gateways more time, never less.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{CsiVolume, Namespace, NodePool, Timestamp, Volume};
use state::{Entity, Key, Snapshot, Write};

/// The deletions in progress.
#[derive(Debug)]
pub struct Deletions {
    timeout: Duration,
    /// Object → the revision of its mark, and when that was first seen.
    marked: BTreeMap<Key, (u64, Timestamp)>,
}

impl Deletions {
    /// Allows each deletion to take `timeout`.
    pub fn new(timeout: Duration) -> Self {
        let marked = BTreeMap::new();
        Self { timeout, marked }
    }

    /// Returns the writes that remove the marks older than the timeout, each a transaction.
    ///
    /// Shape: ordered by key; returned again by every call until the mark is gone.
    pub fn expired(&mut self, now: Timestamp, snapshot: &Snapshot) -> Vec<Write> {
        let mut seen = BTreeMap::new();
        let mut expired = Vec::new();
        for unmark in unmarks(snapshot) {
            let (key, modify_index) = (unmark.key(), unmark.expected_index());
            let before = self.marked.get(key);
            let same = before.filter(|(index, _)| *index == modify_index);
            let since = same.map_or(now, |(_, since)| *since);
            seen.insert(key.clone(), (modify_index, since));
            if now.since(since) >= self.timeout {
                expired.push(unmark);
            }
        }
        self.marked = seen;
        expired.sort_by(|one, other| one.key().cmp(other.key()));
        expired
    }
}

/// Returns the updates that remove the mark of every marked object.
fn unmarks(snapshot: &Snapshot) -> impl Iterator<Item = Write> {
    let namespaces = snapshot.namespaces().filter(|row| row.value.deleting);
    let namespaces = namespaces.map(|row| {
        let namespace = Namespace {
            deleting: false,
            ..row.value.clone()
        };
        Write::Update {
            key: Key::Namespace(namespace.name.clone()),
            modify_index: row.modify_index,
            entity: Entity::Namespace(Box::new(namespace)),
        }
    });
    let pools = snapshot.node_pools().filter(|row| row.value.deleting);
    let pools = pools.map(|row| {
        let pool = NodePool {
            deleting: false,
            ..row.value.clone()
        };
        Write::Update {
            key: Key::NodePool(pool.name.clone()),
            modify_index: row.modify_index,
            entity: Entity::NodePool(Box::new(pool)),
        }
    });
    let volumes = snapshot.volumes().filter(|row| row.value.deleting);
    let volumes = volumes.map(|row| {
        let volume = Volume {
            deleting: false,
            ..row.value.clone()
        };
        Write::Update {
            key: Key::Volume(volume.key()),
            modify_index: row.modify_index,
            entity: Entity::Volume(Box::new(volume)),
        }
    });
    let csi = snapshot.csi_volumes().filter(|row| row.value.deleting);
    let csi = csi.map(|row| {
        let volume = CsiVolume {
            deleting: false,
            ..row.value.clone()
        };
        Write::Update {
            key: Key::CsiVolume(volume.key()),
            modify_index: row.modify_index,
            entity: Entity::CsiVolume(Box::new(volume)),
        }
    });
    namespaces.chain(pools).chain(volumes).chain(csi)
}
