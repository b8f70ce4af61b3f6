//! Preemption on a full node: possible or not, with its victims or the reason.

use model::job::MAX_PRIORITY;
use model::{AllocId, Evaluation, JobType, Plan, SchedulerConfiguration};
use state::{AllocView, Snapshot};

use crate::explain::probe::Probe;
use crate::preempt::candidates::{Candidate, Preemptor};
use crate::preempt::choice::victims;
use crate::preempt::cost::PRIORITY_DELTA;
use crate::preempt::node_fit::NodeFit;
use crate::preempt::preempted::Preempted;

/// The outcome of a preemption attempt on a full node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreemptionOutcome {
    Possible {
        victims: Vec<Victim>,
    },
    /// Possible if the operator enabled preemption for jobs of this type.
    Disabled {
        job_type: JobType,
        victims: Vec<Victim>,
    },
    /// The allocations that would have to go have too high a priority.
    Outranked {
        /// The priority of the preempting job.
        priority: u8,
        /// The lowest priority that would suffice; may exceed any job's.
        needed: u8,
        /// The type of the preempting job, if preemption is disabled for it as well.
        disabled_for: Option<JobType>,
    },
    /// The allocation would not fit even without the allocations of all other jobs.
    Insufficient {
        /// The dimension that would still be short, as in metrics.
        reason: String,
    },
}

/// An allocation that would be evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    pub alloc_id: AllocId,
    pub job_id: String,
    /// The priority of the job version that the victim runs.
    pub priority: u8,
}

/// Numbers of full nodes by preemption outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptionCounts {
    pub possible: u32,
    pub disabled: u32,
    pub outranked: u32,
    pub insufficient: u32,
    /// The lowest priority that would suffice on one of the outranked nodes; `None`: there is no such
    /// node, or all of them need more than the highest priority.
    pub min_priority: Option<u8>,
    /// Preemption is disabled for jobs of this type.
    pub type_disabled: bool,
}

impl PreemptionOutcome {
    /// `possible`, `disabled`, `outranked` or `insufficient`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Possible { .. } => "possible",
            Self::Disabled { .. } => "disabled",
            Self::Outranked { .. } => "outranked",
            Self::Insufficient { .. } => "insufficient",
        }
    }

    /// Returns the victims; empty unless possible or disabled.
    pub fn victims(&self) -> &[Victim] {
        match self {
            Self::Possible { victims } | Self::Disabled { victims, .. } => victims,
            Self::Outranked { .. } | Self::Insufficient { .. } => &[],
        }
    }

    /// Returns the outcome with its reason, for people.
    pub fn text(&self) -> String {
        match self {
            Self::Possible { victims } => format!("possible by evicting {}", listed(victims)),
            Self::Disabled { job_type, victims } => {
                let (job_type, victims) = (job_type.as_str(), listed(victims));
                format!("disabled for {job_type} jobs; if enabled, possible by evicting {victims}")
            }
            Self::Outranked {
                priority, needed, ..
            } if *needed > MAX_PRIORITY => format!(
                "not possible: it needs priority {needed}, and the maximum is {MAX_PRIORITY}; \
                 this job has {priority}"
            ),
            Self::Outranked {
                priority,
                needed,
                disabled_for,
            } => {
                let disabled = disabled_for.map(|job_type| {
                    let job_type = job_type.as_str();
                    format!("disabled for {job_type} jobs; if enabled, ")
                });
                format!(
                    "{}needs priority {needed} or more, {PRIORITY_DELTA} above its victims; \
                     this job has {priority}",
                    disabled.unwrap_or_default()
                )
            }
            Self::Insufficient { reason } => {
                format!(
                    "insufficient: still short of {reason} without the allocations of all other jobs"
                )
            }
        }
    }
}

impl PreemptionCounts {
    pub(super) fn add(&mut self, outcome: &PreemptionOutcome) {
        self.type_disabled |= match outcome {
            PreemptionOutcome::Disabled { .. } => true,
            PreemptionOutcome::Outranked { disabled_for, .. } => disabled_for.is_some(),
            PreemptionOutcome::Possible { .. } | PreemptionOutcome::Insufficient { .. } => false,
        };
        let count = match outcome {
            PreemptionOutcome::Possible { .. } => &mut self.possible,
            PreemptionOutcome::Disabled { .. } => &mut self.disabled,
            PreemptionOutcome::Outranked { needed, .. } => {
                let needed = Some(*needed).filter(|needed| *needed <= MAX_PRIORITY);
                self.min_priority = self.min_priority.into_iter().chain(needed).min();
                &mut self.outranked
            }
            PreemptionOutcome::Insufficient { .. } => &mut self.insufficient,
        };
        *count += 1;
    }
}

/// Lists the victims with the highest priorities, and how many more there are.
fn listed(victims: &[Victim]) -> String {
    const NAMED_MAX: usize = 3;
    let mut sorted: Vec<_> = victims.iter().collect();
    sorted.sort_by_key(|victim| std::cmp::Reverse(victim.priority));
    let named = sorted.iter().take(NAMED_MAX).map(|victim| {
        let (id, job, priority) = (victim.alloc_id.short(), &victim.job_id, victim.priority);
        format!("allocation {id} of job {job:?} (priority {priority})")
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match victims.len().saturating_sub(NAMED_MAX) {
        0 => named,
        1 => format!("{named} and one other"),
        others => format!("{named} and {others} others"),
    }
}

/// Evaluates preemption on full nodes for one group.
#[derive(Debug)]
pub(super) struct PreemptionProbe {
    preemptor: Preemptor,
    job_type: JobType,
    is_enabled: bool,
    /// Evicted by the plan already.
    preempted: Preempted,
}

/// An outcome, and the candidates to evict for it.
type Found<'a> = (PreemptionOutcome, Vec<Candidate<'a>>);

impl PreemptionProbe {
    pub(super) fn new(
        config: &SchedulerConfiguration,
        snapshot: &Snapshot,
        eval: &Evaluation,
        plan: &Plan,
        probe: &Probe<'_>,
    ) -> Self {
        let mut preempted = Preempted::default();
        for view in evicted(plan, probe).filter_map(|id| snapshot.alloc(id)) {
            preempted.add(view);
        }
        let job = &probe.job.value;
        Self {
            preemptor: Preemptor {
                job: eval.job.clone(),
                priority: job.priority,
            },
            job_type: job.job_type,
            is_enabled: config.preemption.is_enabled(job.job_type),
            preempted,
        }
    }

    /// Evaluates preemption on a node without room; `None`: the node has no allocation of another job.
    pub(super) fn check<'a>(
        &self,
        snapshot: &'a Snapshot,
        room: &NodeFit<'_>,
    ) -> Option<Found<'a>> {
        let node = room.node.id;
        let of_any_priority = Preemptor {
            priority: u8::MAX,
            ..self.preemptor.clone()
        };
        let others = of_any_priority.candidates(snapshot, node, &self.preempted);
        if others.is_empty() {
            return None;
        }
        let needed = match needed(room, &others) {
            Ok(needed) => needed,
            Err(reason) => return Some((PreemptionOutcome::Insufficient { reason }, Vec::new())),
        };
        let candidates = self.preemptor.candidates(snapshot, node, &self.preempted);
        let chosen = victims(room, &candidates, &self.preempted);
        let Some(chosen) = chosen else {
            let outranked = PreemptionOutcome::Outranked {
                priority: self.preemptor.priority,
                needed,
                disabled_for: (!self.is_enabled).then_some(self.job_type),
            };
            return Some((outranked, Vec::new()));
        };
        let chosen = chosen.into_iter().map(|position| candidates[position]);
        let chosen: Vec<_> = chosen.collect();
        let victims = chosen.iter().map(victim).collect();
        let outcome = if self.is_enabled {
            PreemptionOutcome::Possible { victims }
        } else {
            PreemptionOutcome::Disabled {
                job_type: self.job_type,
                victims,
            }
        };
        Some((outcome, chosen))
    }
}

/// Returns the evictions of `plan`, except those for the allocation that the probe leaves out.
pub(super) fn evicted<'p>(
    plan: &'p Plan,
    probe: &Probe<'_>,
) -> impl Iterator<Item = AllocId> + use<'p> {
    let left_out = probe.left_out;
    let stops = plan.preemptions.values().flatten();
    let others = stops.filter(move |stop| left_out.is_none() || stop.preempted_by != left_out);
    others.map(|stop| stop.alloc_id)
}

/// Returns the lowest priority of a preemptor for which enough of `others` are candidates.
///
/// # Errors
/// The dimension that is short even without all of them.
fn needed(room: &NodeFit<'_>, others: &[Candidate<'_>]) -> Result<u8, String> {
    let mut without = room.usage.clone();
    let mut short = String::new();
    for of_one_priority in others.chunk_by(|one, other| one.priority == other.priority) {
        for candidate in of_one_priority {
            without.remove(candidate.resources());
        }
        match room.with(&without).find() {
            Ok(_) => return Ok(of_one_priority[0].priority.saturating_add(PRIORITY_DELTA)),
            Err(exhausted) => short = exhausted.to_string(),
        }
    }
    Err(short)
}

fn victim(candidate: &Candidate<'_>) -> Victim {
    let view: &AllocView = candidate.view;
    Victim {
        alloc_id: view.alloc.id,
        job_id: view.alloc.job_id.to_string(),
        priority: candidate.priority,
    }
}
