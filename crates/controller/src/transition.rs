//! Status transitions of nodes, and the writes that carry them out.
//!
//! The node's new status is written together with the evaluations of its jobs. What does not fit
//! into one transaction follows in others. After a crash in between, the next leader finds the jobs
//! without an evaluation ([`crate::Effect::Evaluate`]).

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
    /// Returns the writes of the transition, one list for each transaction, in order.
    ///
    /// Shape: the first list updates the node; empty when the node has changed since the decision,
    /// which is then made again. `next_id` draws the ids of the evaluations; the caller sets their
    /// trace.
    pub fn writes(
        &self,
        config: &Config,
        snapshot: &Snapshot,
        now: Timestamp,
        next_id: &mut dyn FnMut() -> EvalId,
    ) -> Vec<Vec<Write>> {
        let stored = snapshot.node(self.node_id);
        let Some(stored) = stored.filter(|node| node.modify_index == self.modify_index) else {
            return Vec::new();
        };
        let node = moved(config, &stored.value, self.to, now);
        let evals = if affects_jobs(self.from, self.to) {
            eval_writes(snapshot, &stored.value, now, next_id)
        } else {
            Vec::new()
        };
        let update = Write::Update {
            key: Key::Node(self.node_id),
            modify_index: stored.modify_index,
            entity: Entity::Node(Box::new(node)),
        };
        let mut txns = split(evals);
        match txns.first_mut() {
            Some(first) => first.insert(0, update),
            None => txns.push(vec![update]),
        }
        txns
    }
}

/// Returns the writes that create the evaluations of a node's jobs, one list for each transaction.
pub fn evaluate(
    snapshot: &Snapshot,
    node_id: NodeId,
    now: Timestamp,
    next_id: &mut dyn FnMut() -> EvalId,
) -> Vec<Vec<Write>> {
    let node = snapshot.node(node_id);
    let evals = node.map(|node| eval_writes(snapshot, &node.value, now, next_id));
    split(evals.unwrap_or_default())
}

fn eval_writes(
    snapshot: &Snapshot,
    node: &Node,
    now: Timestamp,
    next_id: &mut dyn FnMut() -> EvalId,
) -> Vec<Write> {
    let evals = NodeEvals::new(snapshot).of_node(node, now, next_id);
    evals.into_iter().map(Write::create_eval).collect()
}

fn split(evals: Vec<Write>) -> Vec<Vec<Write>> {
    evals.chunks(EVALS_PER_TXN).map(<[Write]>::to_vec).collect()
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
