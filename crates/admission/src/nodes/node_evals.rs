//! The writes of the evaluations that a changed node causes.

use model::{EvalId, Node, Timestamp};
use placement::NodeEvals;
use state::{Entity, Key, Snapshot, Write};

/// The number of evaluations that fit in the transaction that changes the node's record, which has
/// a thousand operations at most. Further ones follow in transactions of their own.
pub const MAX_NODE_EVALS: usize = 900;

/// Returns the creation of one evaluation for each job that a change of the node concerns
/// ([`NodeEvals::of_node`]).
///
/// Shape: ordered by job, one each. `next_id` is called once for each.
pub fn node_evals(
    snapshot: &Snapshot,
    node: &Node,
    now: Timestamp,
    trace_parent: &str,
    mut next_id: impl FnMut() -> EvalId,
) -> Vec<Write> {
    let evals = NodeEvals::new(snapshot).of_node(node, now, &mut next_id);
    evals
        .into_iter()
        .map(|mut eval| {
            trace_parent.clone_into(&mut eval.trace_parent);
            Write::Create {
                key: Key::Eval(eval.id),
                entity: Entity::Eval(Box::new(eval)),
            }
        })
        .collect()
}
