//! Pending writes: the optimistic overlay that plans are verified on.
//!
//! It is not a copy of the state but a list of differences, applied to the replica's snapshot at the
//! moment of a query. So a plan is always checked against the newest state. A write that the
//! replica shows already is not counted twice: every entry has the revision that it is based on, and
//! is ignored once the replica shows another.

use std::borrow::Cow;
use std::sync::Arc;

use model::{AllocId, AllocatedResources, Allocation, ClientStatus, CsiVolumeKey, JobKey, NodeId};
use placement::VolumeWrites;
use placement::csi::holders::{self, Holder};
use rustc_hash::FxHashMap;
use state::{Entity, Key, NodeUsage, Snapshot, Write};

use crate::piece::Piece;

/// Writes that are uncommitted, or not in the replica yet, by node and by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pending {
    nodes: FxHashMap<NodeId, Vec<PendingAlloc>>,
    /// Key → the mod revision that its write is based on; 0: it is created.
    keys: FxHashMap<Key, u64>,
}

/// The future usage of an allocation on its node.
#[derive(Clone, Debug, PartialEq)]
struct PendingAlloc {
    id: AllocId,
    based_on: u64,
    /// Stopped, evicted or given up for lost.
    is_terminal: bool,
    resources: AllocatedResources,
    /// Determines the volumes that it writes to.
    version: (JobKey, u64),
    task_group: Arc<str>,
    name_index: u32,
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Adds the writes of a piece.
    pub(crate) fn add(&mut self, piece: &Piece) {
        for op in &piece.ops {
            if op.is_compare() {
                continue;
            }
            let based_on = op.expected_index();
            self.keys.insert(op.key().clone(), based_on);
            if let Some(alloc) = alloc_of(op) {
                self.nodes
                    .entry(alloc.node_id)
                    .or_default()
                    .push(PendingAlloc {
                        id: alloc.id,
                        based_on,
                        is_terminal: alloc.is_server_terminal()
                            || alloc
                                .client_status_override
                                .is_some_and(ClientStatus::is_terminal),
                        resources: alloc.resources.clone(),
                        version: (alloc.job_key(), alloc.job_version),
                        task_group: Arc::clone(&alloc.task_group),
                        name_index: alloc.name_index,
                    });
            }
        }
    }

    /// Removes the writes of a piece.
    pub(crate) fn remove(&mut self, piece: &Piece) {
        for op in &piece.ops {
            if op.is_compare() {
                continue;
            }
            self.keys.remove(op.key());
            let Some(alloc) = alloc_of(op) else { continue };
            if let Some(allocs) = self.nodes.get_mut(&alloc.node_id) {
                allocs.retain(|pending| pending.id != alloc.id);
                if allocs.is_empty() {
                    self.nodes.remove(&alloc.node_id);
                }
            }
        }
    }

    /// Returns whether a write of `key` is pending that the replica, which has the key at
    /// `shown_index` (0: absent), does not show yet.
    pub(crate) fn is_unshown(&self, key: &Key, shown_index: u64) -> bool {
        self.keys.get(key) == Some(&shown_index)
    }

    /// Returns the volume writes on `node` of pending allocations that the replica does not show yet.
    pub(crate) fn writes(
        &self,
        replica: &Snapshot,
        node: NodeId,
    ) -> impl Iterator<Item = VolumeWrites> {
        let allocs = self.nodes.get(&node).into_iter().flatten();
        let coming = allocs.filter(|one| one.based_on == 0 && replica.alloc(one.id).is_none());
        coming.map(|one| {
            VolumeWrites::of_version(replica, &one.version, &one.task_group, one.name_index)
        })
    }

    /// Returns the pending allocations of any node that will hold a storage system's volume and that
    /// the replica does not show yet.
    pub(crate) fn csi_holders(&self, replica: &Snapshot, key: &CsiVolumeKey) -> Vec<Holder> {
        let all = self.nodes.iter();
        let all = all.flat_map(|(node_id, allocs)| allocs.iter().map(move |one| (*node_id, one)));
        let coming = all.filter(|(_, one)| one.based_on == 0 && replica.alloc(one.id).is_none());
        let holders = coming.filter_map(|(node_id, one)| {
            let part = (&*one.task_group, one.name_index);
            holders::future(replica, key, one.id, node_id, &one.version, part)
        });
        holders.collect()
    }

    /// Returns the future usage of `node`.
    pub(crate) fn usage<'a>(&self, replica: &'a Snapshot, node: NodeId) -> Cow<'a, NodeUsage> {
        let shown = match replica.usage(node) {
            Some(usage) => Cow::Borrowed(usage),
            None => Cow::Owned(NodeUsage::default()),
        };
        let Some(allocs) = self.nodes.get(&node) else {
            return shown;
        };
        let mut usage = shown.into_owned();
        for pending in allocs {
            match replica.alloc(pending.id) {
                None if pending.based_on == 0 && !pending.is_terminal => {
                    usage.add(&pending.resources);
                }
                Some(view) if view.alloc_modify_index == pending.based_on => {
                    if !view.is_terminal() {
                        usage.remove(&view.alloc.resources);
                    }
                    if !pending.is_terminal && !view.is_client_terminal() {
                        usage.add(&pending.resources);
                    }
                }
                // In the replica by now, or collected.
                None | Some(_) => {}
            }
        }
        Cow::Owned(usage)
    }
}

fn alloc_of(op: &Write) -> Option<&Allocation> {
    match op.entity()? {
        Entity::Alloc(alloc) => Some(alloc),
        _ => None,
    }
}
