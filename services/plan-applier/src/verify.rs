//! Verifies a plan, with the nodes of a large one on several threads.

use applier::{NodeOutcome, Pending, PlanVerification, Verification};
use model::{NodeId, Plan, Timestamp};
use state::Snapshot;

/// Nodes per thread at least: a node takes about a microsecond, and starting a thread some tens of
/// microseconds.
const NODES_PER_THREAD_MIN: usize = 256;

/// The result of a verification.
pub(crate) struct Verified {
    pub(crate) verdict: PlanVerification,
    /// See [`Verification::refusing`].
    pub(crate) refusing: Vec<NodeId>,
}

/// Verifies `plan` against the newest state and the pending writes, on up to `threads` threads.
pub(crate) fn verify(
    snapshot: &Snapshot,
    pending: &Pending,
    plan: &Plan,
    now: Timestamp,
    threads: usize,
) -> Verified {
    let verification = Verification::new(snapshot, pending, plan);
    if let Some(verdict) = verification.check_whole() {
        let refusing = Vec::new();
        return Verified { verdict, refusing };
    }
    let nodes = verification.nodes();
    let threads = threads.min(nodes.len() / NODES_PER_THREAD_MIN);
    let check = |nodes: &[NodeId]| -> Vec<NodeOutcome> {
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
    let refusing = verification.refusing(&verdicts);
    Verified {
        verdict: verification.conclude(verdicts, now),
        refusing,
    }
}
