//! What is on its way into the store: the optimistic overlay that plans are verified on.
//!
//! It is not a copy of the state but the list of what will differ, laid over whatever the replica
//! shows at the moment of the question. So a plan is always judged by the newest there is, and a
//! write that the replica shows already is not counted twice: every entry names the revision that it
//! is built on, and once the replica shows another, the entry has come true.

use std::borrow::Cow;
use std::sync::Arc;

use model::{AllocId, AllocatedResources, Allocation, ClientStatus, JobKey, NodeId};
use placement::VolumeWrites;
use rustc_hash::FxHashMap;
use state::{Entity, Key, NodeUsage, Snapshot};

use crate::cut::Piece;
use crate::op::Op;

/// Uncommitted (or not yet shown) writes, by what they concern.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pending {
    nodes: FxHashMap<NodeId, Vec<PendingAlloc>>,
    /// Key → the mod revision that its write is built on; 0: it is created.
    keys: FxHashMap<Key, u64>,
}

/// An allocation as it will be, as far as its node's usage goes.
#[derive(Clone, Debug, PartialEq)]
struct PendingAlloc {
    id: AllocId,
    built_on: u64,
    /// Stopped, evicted or given up for lost.
    is_terminal: bool,
    resources: AllocatedResources,
    /// What says which volumes it writes to.
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
            let built_on = match op {
                Op::Create { .. } => 0,
                Op::Update { modify_index, .. } => *modify_index,
                Op::Check { .. } => continue,
            };
            self.keys.insert(op.key().clone(), built_on);
            if let Some(alloc) = alloc_of(op) {
                self.nodes
                    .entry(alloc.node_id)
                    .or_default()
                    .push(PendingAlloc {
                        id: alloc.id,
                        built_on,
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

    /// Takes the writes of a piece out again.
    pub(crate) fn remove(&mut self, piece: &Piece) {
        for op in &piece.ops {
            if matches!(op, Op::Check { .. }) {
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

    /// Tells whether a write of `key` is on its way that the replica, which shows the key at
    /// `shown_index` (0: not at all), does not show yet.
    pub(crate) fn is_unshown(&self, key: &Key, shown_index: u64) -> bool {
        self.keys.get(key) == Some(&shown_index)
    }

    /// Returns what those write to volumes of `node` who are about to come and are not shown yet.
    pub(crate) fn writes(
        &self,
        replica: &Snapshot,
        node: NodeId,
    ) -> impl Iterator<Item = VolumeWrites> {
        let allocs = self.nodes.get(&node).into_iter().flatten();
        let coming = allocs.filter(|one| one.built_on == 0 && replica.alloc(one.id).is_none());
        coming.map(|one| {
            VolumeWrites::of_version(replica, &one.version, &one.task_group, one.name_index)
        })
    }

    /// Returns what `node` will hold.
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
                None if pending.built_on == 0 && !pending.is_terminal => {
                    usage.add(&pending.resources);
                }
                Some(view) if view.alloc_modify_index == pending.built_on => {
                    if !view.is_terminal() {
                        usage.remove(&view.alloc.resources);
                    }
                    if !pending.is_terminal && !view.is_client_terminal() {
                        usage.add(&pending.resources);
                    }
                }
                // Shown by now, or collected.
                None | Some(_) => {}
            }
        }
        Cow::Owned(usage)
    }
}

fn alloc_of(op: &Op) -> Option<&Allocation> {
    match op.entity()? {
        Entity::Alloc(alloc) => Some(alloc),
        _ => None,
    }
}
