//! Asks of blocked evaluations, and the free capacity of a node that has gained capacity: a gain unblocks
//! only evaluations whose asks may fit.
//!
//! Only a gain that cannot help may be skipped. So an ask is a lower bound and free capacity an upper
//! bound. Where the fit depends on more than cpu, memory and disk of one node, the ask is unknown,
//! and every gain unblocks the evaluation.

use model::constraint::{Constraint, Operator};
use model::{
    ComparableResources, Evaluation, Job, JobType, NodeId, Preemption, TaskGroup, TriggeredBy,
};
use state::Snapshot;

/// The largest number of a job's allocations that are checked; the ask of a job with more of them
/// and several versions is unknown.
const ALLOCS_MAX: usize = 1_000;

/// The minimum of free resources on one node before an evaluation can place anything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asks {
    job_type: JobType,
    /// Cpu, memory and disk of one allocation of each task group that was not placed.
    groups: Vec<[u64; 3]>,
}

/// The free capacity of a node after a gain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeCapacity {
    /// `None`: unknown.
    free: Option<[u64; 3]>,
    /// Jobs of its types may evict others, and so find more capacity than is free.
    preemption: Preemption,
}

impl FreeCapacity {
    /// Returns the free capacity of a node as `snapshot` has it.
    pub fn on_node(snapshot: &Snapshot, node_id: NodeId) -> Self {
        let preemption = snapshot.scheduler_config().preemption;
        let Some(node) = snapshot.node(node_id) else {
            return Self {
                free: None,
                preemption,
            };
        };
        let used = snapshot.usage(node_id).map(|usage| usage.total);
        let free = node.value.available().minus(used.unwrap_or_default());
        Self {
            free: Some(amounts(free)),
            preemption,
        }
    }

    /// None: the gain is a storage system's volume, which helps only evaluations that wait for
    /// more than cpu, memory and disk.
    pub fn of_volumes() -> Self {
        Self {
            free: Some([0; 3]),
            preemption: Preemption {
                system: false,
                sysbatch: false,
                batch: false,
                service: false,
            },
        }
    }

    /// Tells whether an evaluation with these asks may find a place there; `None`: they are unknown.
    pub(crate) fn may_take(&self, asks: Option<&Asks>) -> bool {
        let (Some(free), Some(asks)) = (self.free, asks) else {
            return true;
        };
        let fits = |ask: &[u64; 3]| ask.iter().zip(free).all(|(ask, free)| *ask <= free);
        self.preemption.is_enabled(asks.job_type) || asks.groups.iter().any(fits)
    }
}

impl Asks {
    /// Returns the asks of a blocked evaluation; `None`: unknown.
    pub fn of(snapshot: &Snapshot, eval: &Evaluation) -> Option<Self> {
        // System jobs wait for one node each; after lost races there was capacity already.
        if eval.job_type.is_per_node()
            || eval.triggered_by == TriggeredBy::MaxPlanAttempts
            || eval.failed_task_groups.is_empty()
        {
            return None;
        }
        let job = &snapshot.job(&eval.job)?.value;
        if job.all_at_once || has_distinct(&job.constraints) || replaces_own(snapshot, job) {
            return None;
        }
        let names = eval.failed_task_groups.keys();
        let groups: Option<Vec<_>> = names
            .map(|name| {
                let group = job.task_group(name)?;
                is_plain(group).then(|| amounts(group.ask()))
            })
            .collect();
        Some(Self {
            job_type: eval.job_type,
            groups: groups?,
        })
    }
}

fn amounts(resources: ComparableResources) -> [u64; 3] {
    [resources.cpu_mhz, resources.memory_mib, resources.disk_mib]
}

/// Tells whether a node's own capacity alone decides if an allocation of the group fits.
fn is_plain(group: &TaskGroup) -> bool {
    let mut constraints = group.tasks.iter().map(|task| &task.constraints);
    group.volumes.is_empty()
        && !has_distinct(&group.constraints)
        && !constraints.any(|constraints| has_distinct(constraints))
}

/// The end of an allocation on one node may allow a placement on another.
fn has_distinct(constraints: &[Constraint]) -> bool {
    let mut operators = constraints.iter().map(|constraint| constraint.operator);
    operators.any(|operator| {
        matches!(
            operator,
            Operator::DistinctHosts | Operator::DistinctProperty
        )
    })
}

/// Tells whether allocations of another version of the job may be stopped for new ones: their room
/// counts as well.
fn replaces_own(snapshot: &Snapshot, job: &Job) -> bool {
    if job.version == 0 {
        return false;
    }
    let key = job.key();
    let mut allocs = snapshot.allocs_by_job(&key);
    let is_other = |view: &state::AllocView| {
        view.alloc.job_version != job.version && !view.is_client_terminal()
    };
    allocs.by_ref().take(ALLOCS_MAX).any(is_other) || allocs.next().is_some()
}
