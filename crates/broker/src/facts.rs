//! Facts for the broker, derived from changes and snapshots of the replica.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{ClientStatus, EvalId, EvalStatus, Evaluation, Node, NodeId};
use rustc_hash::FxHashSet;
use state::{Change, Entity, Key, Snapshot};

use crate::event::{Fact, OpenEval};
use crate::free_capacity::FreeCapacity;

/// Reads the change feed.
///
/// Source: Nomad's public behaviour: capacity comes with a node that becomes ready or eligible,
/// with a ready node that registers anew, with a volume that is registered, and with an allocation
/// that completes or fails; not with a lost allocation, whose node is gone too. A repeated report of
/// an allocation's end counts again: at worst, an evaluation runs needlessly.
#[derive(Debug, Default)]
pub struct Reader {
    /// The schedulable nodes as of the last change read.
    schedulable: FxHashSet<NodeId>,
}

impl Reader {
    /// Makes a reader of the changes after `snapshot`.
    pub fn new(snapshot: &Snapshot) -> Self {
        let schedulable = snapshot.nodes().filter(|node| node.value.is_schedulable());
        Self {
            schedulable: schedulable.map(|node| node.value.id).collect(),
        }
    }

    /// Returns the facts in the changes of one revision, in the order of the changes.
    ///
    /// Shape: `snapshot` is of that revision or a later one; only immutable fields are read from it.
    /// Changes that do not concern the broker give no fact.
    pub fn read(&mut self, revision: u64, changes: &[Change], snapshot: &Snapshot) -> Vec<Fact> {
        changes
            .iter()
            .filter_map(|change| self.read_one(revision, change, snapshot))
            .collect()
    }

    fn read_one(&mut self, revision: u64, change: &Change, snapshot: &Snapshot) -> Option<Fact> {
        match change {
            Change::Put {
                entity: Entity::Eval(eval),
                create_index,
                modify_index,
                ..
            } => Some(eval_fact(eval, *create_index, *modify_index, snapshot)),
            Change::Delete { key: Key::Eval(id) } => Some(Fact::Closed {
                eval_id: *id,
                index: revision,
                placed_all: false,
            }),
            Change::Put {
                entity: Entity::Node(node),
                modify_index,
                ..
            } => self.node_fact(node, *modify_index, snapshot),
            Change::Delete { key: Key::Node(id) } => {
                self.schedulable.remove(id);
                None
            }
            Change::Put {
                entity: Entity::SchedulerConfig(config),
                ..
            } => Some(Fact::Paused(config.pause_eval_broker)),
            Change::Delete {
                key: Key::SchedulerConfig,
            } => Some(Fact::Paused(false)),
            Change::Put {
                key: Key::AllocClient(id),
                entity: Entity::AllocClient(client),
                modify_index,
                ..
            } if has_ended(client.status) => {
                let node_id = snapshot.alloc(*id)?.alloc.node_id;
                let node = snapshot.node(node_id)?;
                Some(gain(snapshot, &node.value, Some(node_id), *modify_index))
            }
            // An evaluation may wait for a volume.
            Change::Put {
                entity: Entity::Volume(volume),
                modify_index,
                ..
            } if !volume.deleting => {
                let node = snapshot.node(volume.node_id)?;
                Some(gain(
                    snapshot,
                    &node.value,
                    Some(volume.node_id),
                    *modify_index,
                ))
            }
            // It may wait for a storage system's volume, or for the end of an attachment.
            Change::Put {
                entity: Entity::CsiVolume(volume),
                modify_index,
                ..
            } if !volume.deleting => Some(gain_of_volume(*modify_index)),
            Change::Delete {
                key: Key::CsiAttachment(_),
            } => Some(gain_of_volume(revision)),
            _ => None,
        }
    }

    fn node_fact(&mut self, node: &Node, index: u64, snapshot: &Snapshot) -> Option<Fact> {
        if !node.is_schedulable() {
            self.schedulable.remove(&node.id);
            return None;
        }
        // A schedulable node that registers anew is a gain of its class. A node that becomes schedulable also
        // unblocks the evaluations of system jobs that wait for it, whatever they ask for, so the fact names it.
        let is_newly_schedulable = self.schedulable.insert(node.id);
        let node_id = is_newly_schedulable.then_some(node.id);
        Some(gain(snapshot, node, node_id, index))
    }
}

/// Returns the capacity gains in `snapshot` that may have been missed: the newest gain of each
/// schedulable node, if it is newer than the oldest snapshot of a blocked evaluation.
pub fn capacity(snapshot: &Snapshot) -> Vec<Fact> {
    let blocked = snapshot
        .open_evals()
        .filter(|eval| eval.value.status == EvalStatus::Blocked);
    let Some(oldest) = blocked.map(|eval| eval.value.snapshot_index).min() else {
        return Vec::new();
    };
    let mut gains = BTreeMap::<NodeId, u64>::new();
    for node in snapshot.nodes() {
        gains.insert(node.value.id, node.modify_index);
    }
    let ended = snapshot
        .allocs()
        .filter(|view| has_ended(view.client_status()));
    for view in ended {
        if let Some(index) = gains.get_mut(&view.alloc.node_id) {
            *index = view.modify_index().max(*index);
        }
    }
    for volume in snapshot.volumes().filter(|volume| !volume.value.deleting) {
        if let Some(index) = gains.get_mut(&volume.value.node_id) {
            *index = volume.modify_index.max(*index);
        }
    }
    // The end of an attachment leaves no trace, so every evaluation that waits for a volume runs.
    let has_volumes = snapshot.csi_volumes().next().is_some();
    let mut facts = Vec::from_iter(has_volumes.then(|| gain_of_volume(snapshot.index())));
    for (node_id, index) in gains {
        let Some(node) = snapshot.node(node_id) else {
            continue;
        };
        if node.value.is_schedulable() && index > oldest {
            facts.push(gain(snapshot, &node.value, Some(node_id), index));
        }
    }
    facts
}

/// Returns the fact that an evaluation is closed, with the index that `snapshot` has.
pub(crate) fn closed(snapshot: &Snapshot, eval_id: EvalId) -> Fact {
    match snapshot.eval(eval_id) {
        Some(eval) => closed_at(&eval.value, eval.modify_index),
        None => Fact::Closed {
            eval_id,
            index: snapshot.index(),
            placed_all: false,
        },
    }
}

fn eval_fact(eval: &Evaluation, create_index: u64, modify_index: u64, snapshot: &Snapshot) -> Fact {
    if eval.status.is_terminal() {
        closed_at(eval, modify_index)
    } else {
        Fact::Open(OpenEval::new(eval, create_index, modify_index, snapshot))
    }
}

fn closed_at(eval: &Evaluation, index: u64) -> Fact {
    Fact::Closed {
        eval_id: eval.id,
        index,
        placed_all: eval.status == EvalStatus::Complete && eval.failed_task_groups.is_empty(),
    }
}

fn gain(snapshot: &Snapshot, node: &Node, node_id: Option<NodeId>, index: u64) -> Fact {
    Fact::Capacity {
        class: Arc::from(node.computed_class.as_str()),
        node_id,
        free: FreeCapacity::on_node(snapshot, node.id),
        index,
    }
}

fn gain_of_volume(index: u64) -> Fact {
    Fact::Capacity {
        class: Arc::from(""),
        node_id: None,
        free: FreeCapacity::of_volumes(),
        index,
    }
}

/// Tells whether an allocation of this status has released its resources.
fn has_ended(status: ClientStatus) -> bool {
    matches!(status, ClientStatus::Complete | ClientStatus::Failed)
}
