//! Judges a plan on threads of its own, its nodes side by side.

use applier::{NodeVerdict, Pending, Verdict, Verification};
use model::{NodeId, Plan, Timestamp};
use state::Snapshot;

/// A plan that touches fewer nodes is judged on one thread: a node takes about a microsecond, and
/// starting a thread some tens of them.
const NODES_PER_THREAD_MIN: usize = 256;

/// Judges `plan` against the newest state and what is on its way, on up to `threads` threads.
pub(crate) fn verify(
    snapshot: &Snapshot,
    pending: &Pending,
    plan: &Plan,
    now: Timestamp,
    threads: usize,
) -> Verdict {
    let verification = Verification::new(snapshot, pending, plan);
    if let Some(verdict) = verification.check_whole() {
        return verdict;
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
    verification.conclude(verdicts, now)
}
