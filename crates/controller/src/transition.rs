//! Status transitions of nodes, and the writes that carry them out.
//!
//! The node's new status is written together with the evaluations of its jobs. If some do not fit
//! into the transaction, the node's record says so, and they are created after it
//! ([`crate::Effect::Evaluate`]), by the next leader if this one ends.

use model::{EvalId, Node, NodeId, NodeStatus, Timestamp};
use placement::NodeEvals;
use state::{Entity, Key, Snapshot, Write};

use crate::config::Config;
use crate::evals::affects_jobs;

/// Evaluations in one transaction: with the node and the fence below the store's limit of 1,000
/// operations.
const EVALS_PER_TXN: usize = 900;

/// One change of a node's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub node_id: NodeId,
    pub from: NodeStatus,
    pub to: NodeStatus,
    /// The node's modify index that the transition was decided on.
    pub modify_index: u64,
}

impl Transition {
    /// Returns the writes of the transition, which are one transaction.
    ///
    /// Shape: the first one updates the node; empty when the node has changed since the decision,
    /// which is then made again. `next_id` draws the ids of the evaluations; the caller sets their
    /// trace.
    pub fn writes(
        &self,
        config: &Config,
        snapshot: &Snapshot,
        now: Timestamp,
        next_id: &mut dyn FnMut() -> EvalId,
    ) -> Vec<Write> {
        let stored = snapshot.node(self.node_id);
        let Some(stored) = stored.filter(|node| node.modify_index == self.modify_index) else {
            return Vec::new();
        };
        let mut node = moved(config, &stored.value, self.to, now);
        let mut evals = Vec::new();
        if affects_jobs(self.from, self.to) {
            evals = NodeEvals::new(snapshot).of_node(&stored.value, now, next_id);
            node.lacks_evals = evals.len() > EVALS_PER_TXN;
            evals.truncate(EVALS_PER_TXN);
        }
        let evals = evals.into_iter().map(Write::create_eval);
        [update(stored.modify_index, node)]
            .into_iter()
            .chain(evals)
            .collect()
    }
}

/// Returns the writes that create the missing evaluations of a node's jobs, one list for each
/// transaction, in order. The last one records that none is missing any more.
///
/// Shape: empty when there is no such node, or nothing to write.
pub fn evaluate(
    snapshot: &Snapshot,
    node_id: NodeId,
    now: Timestamp,
    next_id: &mut dyn FnMut() -> EvalId,
) -> Vec<Vec<Write>> {
    let Some(node) = snapshot.node(node_id) else {
        return Vec::new();
    };
    let mut evals = NodeEvals::new(snapshot).of_node(&node.value, now, next_id);
    evals.retain(|eval| snapshot.covered_index(&eval.job, now) < node.modify_index);
    let evals: Vec<Write> = evals.into_iter().map(Write::create_eval).collect();
    let mut txns: Vec<Vec<Write>> = evals.chunks(EVALS_PER_TXN).map(<[_]>::to_vec).collect();
    if node.value.lacks_evals {
        let done = Node {
            lacks_evals: false,
            ..node.value.clone()
        };
        let done = update(node.modify_index, done);
        match txns.last_mut() {
            Some(last) => last.push(done),
            None => txns.push(vec![done]),
        }
    }
    txns
}

fn update(modify_index: u64, node: Node) -> Write {
    Write::Update {
        key: Key::Node(node.id),
        modify_index,
        entity: Entity::Node(Box::new(node)),
    }
}

/// Returns a node with its new status.
fn moved(config: &Config, node: &Node, to: NodeStatus, now: Timestamp) -> Node {
    let status_description = match (node.status, to) {
        (NodeStatus::Down, NodeStatus::Ready) => "heartbeats resumed".to_owned(),
        (_, NodeStatus::Ready) => String::new(),
        (_, NodeStatus::Initializing) => {
            "heartbeats resumed; its allocations have to be reported".to_owned()
        }
        (_, NodeStatus::Down | NodeStatus::Disconnected) => {
            format!("no heartbeat for {} s", config.silence_limit().as_secs())
        }
    };
    Node {
        status: to,
        status_description,
        status_updated_at: now,
        ..node.clone()
    }
}
