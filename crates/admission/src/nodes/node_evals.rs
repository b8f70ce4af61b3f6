//! The writes of a changed node, with the evaluations that the change causes.

use model::{EvalId, Node, Timestamp};
use placement::NodeEvals;
use state::{Entity, Key, Snapshot, Write, set_trace_parent};

/// The number of evaluations that fit in the transaction that changes the node's record, which has
/// a thousand operations at most. The cluster-controller creates further ones.
const MAX_NODE_EVALS: usize = 900;

/// Inputs of a node's evaluations that no snapshot has.
pub struct EvalInputs<'a> {
    pub now: Timestamp,
    /// The trace that the request is part of; empty: none.
    pub trace_parent: &'a str,
    /// Called once for each evaluation.
    pub next_id: &'a dyn Fn() -> EvalId,
}

/// The writes of a changed node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeWrites {
    /// One transaction: the node's, and as many evaluations as fit. If some do not, or others may be needed
    /// after a change of addresses, the node's record says so ([`Node::lacks_evals`]), and the
    /// cluster-controller creates them.
    pub writes: Vec<Write>,
    /// The evaluations among them, ordered by job.
    pub eval_ids: Vec<EvalId>,
}

impl NodeWrites {
    /// Returns `writes` with the evaluations of `node`.
    pub(crate) fn with_evals(
        mut writes: Vec<Write>,
        snapshot: &Snapshot,
        node: &Node,
        inputs: &EvalInputs<'_>,
    ) -> Self {
        let mut evals = node_evals(snapshot, node, inputs);
        let lacks_evals = evals.len() > MAX_NODE_EVALS || has_other_addresses(snapshot, node);
        evals.truncate(MAX_NODE_EVALS);
        for write in &mut writes {
            if let Write::Create { entity, .. } | Write::Update { entity, .. } = write
                && let Entity::Node(node) = entity
            {
                node.lacks_evals = lacks_evals;
            }
        }
        let ids = evals.iter().filter_map(|write| match write.key() {
            Key::Eval(id) => Some(*id),
            _ => None,
        });
        let eval_ids = ids.collect();
        writes.extend(evals);
        Self { writes, eval_ids }
    }

    /// Returns `writes` without evaluations.
    pub(crate) fn without_evals(writes: Vec<Write>) -> Self {
        Self {
            writes,
            ..Self::default()
        }
    }
}

/// Tells whether the record changes addresses. A plan made before the change may commit after
/// `snapshot`, and place an allocation on an earlier address, of a job without an evaluation here. The
/// cluster-controller evaluates such jobs, from a snapshot with the new record.
fn has_other_addresses(snapshot: &Snapshot, node: &Node) -> bool {
    snapshot.node(node.id).is_some_and(|stored| {
        stored.value.host_ip != node.host_ip || stored.value.host_networks != node.host_networks
    })
}

/// Returns the creation of one evaluation for each job that a change of the node concerns
/// ([`NodeEvals::of_node`]).
///
/// Shape: ordered by job, one each.
pub(crate) fn node_evals(snapshot: &Snapshot, node: &Node, inputs: &EvalInputs<'_>) -> Vec<Write> {
    let mut next_id = || (inputs.next_id)();
    let evals = NodeEvals::new(snapshot).of_node(node, inputs.now, &mut next_id);
    let mut writes: Vec<Write> = evals.into_iter().map(Write::create_eval).collect();
    set_trace_parent(&mut writes, inputs.trace_parent);
    writes
}
