//! Whether others would make way on a full node, and if not, why not.

use model::{AllocId, Evaluation, JobType, Plan, SchedulerConfiguration};
use state::{AllocView, Snapshot};

use crate::explain::inquiry::Inquiry;
use crate::preempt::{Candidate, Claim, PRIORITY_DELTA, Preempted, Room, victims};

/// The most important that a job can be. Source: Nomad's default of `job_max_priority`.
const PRIORITY_MAX: u8 = 100;

/// What comes of asking others on a full node to make way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// They would.
    Open { victims: Vec<Victim> },
    /// They would, if the operator let jobs of this type ask.
    Off {
        job_type: JobType,
        victims: Vec<Victim>,
    },
    /// Who is in the way is too important.
    Outranked {
        /// The priority of the job that asks.
        priority: u8,
        /// What it would have to be at least; may be more than any job's.
        needed: u8,
        /// The type of the job that asks, if the operator lets none of it ask anyway.
        off_for: Option<JobType>,
    },
    /// It would not fit even if the allocations of all other jobs went.
    Never {
        /// What would still be short, as in metrics.
        reason: String,
    },
}

/// One that makes way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    pub alloc_id: AllocId,
    pub job_id: String,
    /// Its job's, in the version that it runs.
    pub priority: u8,
}

/// On how many full nodes asking comes to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    pub open: u32,
    pub off: u32,
    pub outranked: u32,
    pub never: u32,
    /// The lowest priority at which somebody would make way somewhere, of those where nobody does
    /// for that reason alone; `None`: there is no such node, or no job can be as important.
    pub needed_least: Option<u8>,
    /// Whether the operator lets no job of this type ask.
    pub is_off: bool,
}

impl Way {
    /// `open`, `off`, `outranked` or `never`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Off { .. } => "off",
            Self::Outranked { .. } => "outranked",
            Self::Never { .. } => "never",
        }
    }

    /// Returns who would make way.
    pub fn victims(&self) -> &[Victim] {
        match self {
            Self::Open { victims } | Self::Off { victims, .. } => victims,
            Self::Outranked { .. } | Self::Never { .. } => &[],
        }
    }

    /// Returns what comes of it, for people.
    pub fn text(&self) -> String {
        match self {
            Self::Open { victims } => format!("{} would make way", listed(victims)),
            Self::Off { job_type, victims } => {
                let (job_type, victims) = (job_type.as_str(), listed(victims));
                format!("off for {job_type} jobs; with it {victims} would make way")
            }
            Self::Outranked {
                priority, needed, ..
            } if *needed > PRIORITY_MAX => format!(
                "who is in the way makes way for no job, as none can have priority {needed}; \
                 this one has {priority}"
            ),
            Self::Outranked {
                priority,
                needed,
                off_for,
            } => {
                let off = off_for.map(|job_type| {
                    let job_type = job_type.as_str();
                    format!("off for {job_type} jobs; with it ")
                });
                format!(
                    "{}who is in the way makes way for priority {needed} or more, \
                     {PRIORITY_DELTA} above its own; this job has {priority}",
                    off.unwrap_or_default()
                )
            }
            Self::Never { reason } => {
                format!(
                    "no help, without the allocations of all other jobs it is short of {reason}"
                )
            }
        }
    }
}

impl Ways {
    pub(super) fn add(&mut self, way: &Way) {
        self.is_off |= match way {
            Way::Off { .. } => true,
            Way::Outranked { off_for, .. } => off_for.is_some(),
            Way::Open { .. } | Way::Never { .. } => false,
        };
        let count = match way {
            Way::Open { .. } => &mut self.open,
            Way::Off { .. } => &mut self.off,
            Way::Outranked { needed, .. } => {
                let needed = Some(*needed).filter(|needed| *needed <= PRIORITY_MAX);
                let lower = self.needed_least.into_iter().chain(needed).min();
                self.needed_least = lower;
                &mut self.outranked
            }
            Way::Never { .. } => &mut self.never,
        };
        *count += 1;
    }
}

/// Names a few of many, the most important first.
fn listed(victims: &[Victim]) -> String {
    /// How many are named.
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

/// Who asks others to make way.
#[derive(Debug)]
pub(super) struct Asker {
    claim: Claim,
    job_type: JobType,
    may_ask: bool,
    /// The plan has evicted them already.
    preempted: Preempted,
}

/// A way, and the candidates that it takes.
type Found<'a> = (Way, Vec<Candidate<'a>>);

impl Asker {
    pub(super) fn new(
        config: &SchedulerConfiguration,
        snapshot: &Snapshot,
        eval: &Evaluation,
        plan: &Plan,
        inquiry: &Inquiry<'_>,
    ) -> Self {
        let mut preempted = Preempted::default();
        for view in evicted(plan, inquiry).filter_map(|id| snapshot.alloc(id)) {
            preempted.add(view);
        }
        let job = &inquiry.job.value;
        Self {
            claim: Claim {
                job: eval.job.clone(),
                priority: job.priority,
            },
            job_type: job.job_type,
            may_ask: config.preemption.is_enabled(job.job_type),
            preempted,
        }
    }

    /// Asks those on a node that has no room; `None`: nobody of another job is there.
    pub(super) fn ask<'a>(&self, snapshot: &'a Snapshot, room: &Room<'_>) -> Option<Found<'a>> {
        let node = room.node.id;
        // Whoever could ever be asked.
        let anybody = Claim {
            priority: u8::MAX,
            ..self.claim.clone()
        };
        let others = anybody.candidates(snapshot, node, &self.preempted);
        if others.is_empty() {
            return None;
        }
        let needed = match needed(room, &others) {
            Ok(needed) => needed,
            Err(reason) => return Some((Way::Never { reason }, Vec::new())),
        };
        let priority = self.claim.priority;
        let candidates = self.claim.candidates(snapshot, node, &self.preempted);
        let chosen = victims(room, &candidates, &self.preempted);
        let Some(chosen) = chosen else {
            let outranked = Way::Outranked {
                priority,
                needed,
                off_for: (!self.may_ask).then_some(self.job_type),
            };
            return Some((outranked, Vec::new()));
        };
        let chosen = chosen.into_iter().map(|position| candidates[position]);
        let chosen: Vec<_> = chosen.collect();
        let victims = chosen.iter().map(victim).collect();
        let way = if self.may_ask {
            Way::Open { victims }
        } else {
            Way::Off {
                job_type: self.job_type,
                victims,
            }
        };
        Some((way, chosen))
    }
}

/// Returns those whom `plan` evicts, but for those who make way for the one that is asked about.
pub(super) fn evicted<'p>(
    plan: &'p Plan,
    inquiry: &Inquiry<'_>,
) -> impl Iterator<Item = AllocId> + use<'p> {
    let left_out = inquiry.left_out;
    let stops = plan.preemptions.values().flatten();
    let others = stops.filter(move |stop| left_out.is_none() || stop.preempted_by != left_out);
    others.map(|stop| stop.alloc_id)
}

/// Returns the lowest priority at which enough of `others` make way.
///
/// # Errors
/// What is short even without all of them.
fn needed(room: &Room<'_>, others: &[Candidate<'_>]) -> Result<u8, String> {
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
