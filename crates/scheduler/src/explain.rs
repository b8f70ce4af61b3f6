//! Explanations: per node, why it can or cannot take an allocation, and which change would help.
//!
//! For people, on demand: [`explain`] checks every node of a snapshot, one task group at a time, and
//! keeps every reason instead of the first. It explains the current state as the scheduler would leave
//! it, which may differ from the state that the evaluation was processed at.
//!
//! In reading order: `explanation` holds the result types; [`blocker`] is one reason that rules a node
//! out; `probe` selects the allocation that nodes are checked for; `node_checks` checks them;
//! [`preemption`] evaluates evictions on a full node; `tally` aggregates the answers by class;
//! `group_status` counts allocations and finds the deployment that holds back placements.

pub mod blocker;
mod explanation;
mod group_status;
mod node_checks;
pub mod preemption;
mod probe;
mod tally;

use model::{Evaluation, Indexed, Job, NodeId, SchedulerConfiguration, Timestamp};
use placement::Requirements;
use state::Snapshot;

pub use blocker::{DriverFault, Holder, PlacementBlocker, Verdict};
pub use explanation::{
    CLASSES_MAX, Chosen, ClassExplanation, Counts, Explanation, GroupExplanation, Missing,
    NodeExplanation, Outscored, REASONS_MAX, Reason,
};
pub use group_status::{DeploymentHold, HoldReason};
pub use preemption::{PreemptionCounts, PreemptionOutcome, Victim};
pub use probe::Question;

use crate::separation::Separation;
use group_status::GroupStatus;
use node_checks::{Answer, CheckOptions, NodeChecks};
use preemption::PreemptionProbe;
use probe::Probe;
use tally::Tally;

/// A request to explain an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct ExplainRequest<'a> {
    pub eval: &'a Indexed<Evaluation>,
    /// A node to explain in any case.
    pub node: Option<NodeId>,
    pub now: Timestamp,
    /// Breaks near-ties, as in scheduling.
    pub seed: u64,
}

/// Checks every node of `snapshot` for each group of an evaluation's job. A delayed evaluation is
/// explained as of the end of its delay.
///
/// Deterministic. Takes as long as scheduling the job and checking every node once a group;
/// `examples/explanations.rs` measures it.
pub fn explain(snapshot: &Snapshot, request: &ExplainRequest<'_>) -> Explanation {
    explain_with(snapshot.scheduler_config(), snapshot, request)
}

/// As [`explain`], with another configuration than the snapshot's.
pub fn explain_with(
    config: &SchedulerConfiguration,
    snapshot: &Snapshot,
    request: &ExplainRequest<'_>,
) -> Explanation {
    let eval = request.eval;
    let request = &ExplainRequest {
        now: request.now.max(eval.value.wait_until),
        ..*request
    };
    let job = snapshot.job(&eval.value.job).map(AsRef::as_ref);
    let mut explanation = Explanation {
        index: snapshot.index(),
        job_version: job.map(|job| job.value.version),
        empty_reason: empty_reason(job),
        groups: Vec::new(),
    };
    let Some(job) = job.filter(|_| explanation.empty_reason.is_none()) else {
        return explanation;
    };
    // The trigger does not matter: the job is explained as it is.
    let mut asked = eval.clone();
    asked.value.triggered_by = model::TriggeredBy::JobRegister;
    let plan =
        crate::schedule::schedule_with(config, snapshot, &asked, request.now, request.seed).plan;
    let requirements = crate::schedule::requirements(snapshot, Some(job));
    let wanted = probe::planned_asks(
        snapshot,
        &asked.value,
        job,
        &requirements,
        request.now,
        request.seed,
    );
    for group in &job.value.task_groups {
        let probe = Probe::new(snapshot, &eval.value, job, group, &wanted, &plan);
        let found = group_explanation(config, snapshot, request, &plan, &probe);
        explanation.groups.push(found);
    }
    explanation
}

fn empty_reason(job: Option<&Indexed<Job>>) -> Option<&'static str> {
    match job {
        None => Some("the job is gone"),
        Some(job) if job.value.stop => Some("the job is stopped"),
        Some(_) => None,
    }
}

fn group_explanation(
    config: &SchedulerConfiguration,
    snapshot: &Snapshot,
    request: &ExplainRequest<'_>,
    plan: &model::Plan,
    probe: &Probe<'_>,
) -> GroupExplanation {
    let requirements = Requirements::new(&probe.job.value, probe.group).looking_in(snapshot);
    let algorithm = config.algorithm(&probe.job.value.node_pool);
    let preemption_probe = PreemptionProbe::new(config, snapshot, &request.eval.value, plan, probe);
    let mut cluster = node_checks::cluster(snapshot, plan, probe, request.seed);
    let mut ask = |separation| -> Vec<_> {
        let node_checks = NodeChecks::new(
            snapshot,
            plan,
            probe,
            &requirements,
            CheckOptions {
                algorithm,
                preemption_probe: &preemption_probe,
                separation,
                now: request.now,
            },
            &mut cluster,
        );
        node_checks.answers().collect()
    };
    let mut answers = ask(Separation::Full);
    let may_share = probe.generation.may_share(&requirements);
    if may_share && !has_place(probe, &answers) {
        answers = ask(Separation::AllowOutgoing);
    }
    let tally = Tally::new(probe, answers, request.node);
    let (eval, name) = (&request.eval.value, &probe.group.name);
    let status = GroupStatus::new(snapshot, eval, &probe.job.value, name, request.now);
    let job = snapshot.job(&eval.job);
    GroupExplanation {
        placed: status.placed,
        live: status.live,
        done: status.done,
        waiting: status.waiting,
        waits_until: status.waits_until,
        hold: job.and_then(|job| group_status::hold(snapshot, job, name)),
        ..tally.explanation(probe)
    }
}

/// Tells whether the answers leave a node for the allocation: its own, if it has one.
fn has_place(probe: &Probe<'_>, answers: &[Answer<'_>]) -> bool {
    let mut free = answers.iter().filter(|answer| answer.blockers.is_empty());
    match probe.chosen_node {
        Some(chosen_node) => free.any(|answer| answer.node.id == chosen_node),
        None => free.next().is_some(),
    }
}
