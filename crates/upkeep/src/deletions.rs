//! Decides when a deletion that was begun and not finished is taken back.
//!
//! A namespace, a node pool or a volume is marked before it is deleted, so that nobody joins it in
//! between; whoever asked for it may die after the mark. Nobody was told then that it is deleted, so
//! it may as well be there: without the mark it can be used again, and deleted again. To finish the
//! deletion instead, one would have to know what keeps each of them from being deleted.
//!
//! Pure: when a mark was seen first is all that is remembered. A new leader begins anew, which only
//! gives whoever is deleting more time.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Namespace, NodePool, Timestamp, Volume};
use state::{Entity, Key, Snapshot};

/// An object that is to be written without its mark, if it is as it was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct TakeBack {
    pub key: Key,
    pub modify_index: u64,
    pub entity: Entity,
}

/// The marks that were seen.
#[derive(Debug)]
pub struct Deletions {
    patience: Duration,
    /// Object → the revision of its mark, and when that was seen first.
    marked: BTreeMap<Key, (u64, Timestamp)>,
}

impl Deletions {
    /// Makes one that lets deletions take as long as `patience`.
    pub fn new(patience: Duration) -> Self {
        let marked = BTreeMap::new();
        Self { patience, marked }
    }

    /// Looks at all marks, and returns those whose time is over.
    ///
    /// Shape: by key; the same again for as long as they are there.
    pub fn look(&mut self, now: Timestamp, snapshot: &Snapshot) -> Vec<TakeBack> {
        let mut seen = BTreeMap::new();
        let mut over = Vec::new();
        for mark in marks(snapshot) {
            let before = self.marked.get(&mark.key);
            let same = before.filter(|(modify_index, _)| *modify_index == mark.modify_index);
            let since = same.map_or(now, |(_, since)| *since);
            seen.insert(mark.key.clone(), (mark.modify_index, since));
            if now.since(since) >= self.patience {
                over.push(mark);
            }
        }
        self.marked = seen;
        over.sort_by(|one, other| one.key.cmp(&other.key));
        over
    }
}

/// Returns everything that is marked, as it would be without the mark.
fn marks(snapshot: &Snapshot) -> impl Iterator<Item = TakeBack> {
    let namespaces = snapshot.namespaces().filter(|row| row.value.deleting);
    let namespaces = namespaces.map(|row| {
        let namespace = Namespace {
            deleting: false,
            ..row.value.clone()
        };
        TakeBack {
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
        TakeBack {
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
        TakeBack {
            key: Key::Volume(volume.key()),
            modify_index: row.modify_index,
            entity: Entity::Volume(Box::new(volume)),
        }
    });
    namespaces.chain(pools).chain(volumes)
}
