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
    /// Schedulable nodes that rejected their part. A down or ineligible node, or one whose placement
    /// is withheld because of another node, is no bad node.
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
    let is_schedulable = |id: NodeId| {
        let node = snapshot.node(id);
        node.is_some_and(|node| node.value.is_schedulable())
    };
    let rejected = nodes.iter().zip(&verdicts).filter_map(|(id, verdict)| {
        let is_rejected = matches!(verdict, NodeOutcome::Rejected(_));
        (is_rejected && is_schedulable(*id)).then_some(*id)
    });
    let refusing = rejected.collect();
    Verified {
        verdict: verification.conclude(verdicts, now),
        refusing,
    }
}
