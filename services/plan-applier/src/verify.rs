//! Judges a plan on threads of its own, its nodes side by side.

use applier::{NodeVerdict, Pending, Verdict, Verification};
use model::{NodeId, Plan, Timestamp};
use state::Snapshot;

/// A plan that touches fewer nodes is judged on one thread: a node takes about a microsecond, and
/// starting a thread some tens of them.
const NODES_PER_THREAD_MIN: usize = 256;

/// What was found about a plan.
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    /// Nodes that take work and did not take theirs. One that is down or ineligible, or whose part
    /// is left out for another's sake, has nothing wrong about it.
    pub(crate) refusing: Vec<NodeId>,
}

/// Judges `plan` against the newest state and what is on its way, on up to `threads` threads.
pub(crate) fn verify(
    snapshot: &Snapshot,
    pending: &Pending,
    plan: &Plan,
    now: Timestamp,
    threads: usize,
) -> Judged {
    let verification = Verification::new(snapshot, pending, plan);
    if let Some(verdict) = verification.check_whole() {
        let refusing = Vec::new();
        return Judged { verdict, refusing };
    }
    let nodes = verification.nodes();
    let threads = threads.min(nodes.len() / NODES_PER_THREAD_MIN);
    let check = |nodes: &[NodeId]| -> Vec<NodeVerdict> {
        nodes
            .iter()
            .map(|node| verification.check_node(*node))
            .collect()
    };
    let verdicts = if threads < 2 {
        check(&nodes)
    } else {
        let share = nodes.len().div_ceil(threads);
        std::thread::scope(|scope| {
            let shares: Vec<_> = nodes
                .chunks(share)
                .map(|share| scope.spawn(move || check(share)))
                .collect();
            let verdicts = shares.into_iter().map(|share| match share.join() {
                Ok(verdicts) => verdicts,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            verdicts.flatten().collect()
        })
    };
    let is_schedulable = |id: NodeId| {
        let node = snapshot.node(id);
        node.is_some_and(|node| node.value.is_schedulable())
    };
    let rejected = nodes.iter().zip(&verdicts).filter_map(|(id, verdict)| {
        let is_rejected = matches!(verdict, NodeVerdict::Rejected(_));
        (is_rejected && is_schedulable(*id)).then_some(*id)
    });
    let refusing = rejected.collect();
    Judged {
        verdict: verification.conclude(verdicts, now),
        refusing,
    }
}
