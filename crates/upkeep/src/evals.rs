//! The evaluations that follow from a node's change: one for each job that it touches.

use std::collections::BTreeMap;

use model::{
    EvalId, Evaluation, Indexed, Job, JobKey, JobType, Node, NodeStatus, Timestamp, TriggeredBy,
};
use placement::Scope;
use state::{AllocView, Snapshot};

/// The priority of an evaluation whose job is gone: what jobs have unless they say otherwise.
const DEFAULT_PRIORITY: u8 = 50;

/// Tells whether a change of status is news to the jobs on the node.
///
/// Source: Nomad's public behaviour: a node that goes down, becomes ready, or is disconnected or
/// no longer so.
pub fn is_news(from: NodeStatus, to: NodeStatus) -> bool {
    use NodeStatus::{Disconnected, Down, Ready};
    from != to && (matches!(to, Down | Ready | Disconnected) || from == Disconnected)
}

/// Makes the evaluations of nodes' changes as of one snapshot.
#[derive(Debug)]
pub struct NodeEvals<'a> {
    snapshot: &'a Snapshot,
    /// System jobs run wherever they may, so each is touched by every node in its scope.
    system_jobs: Vec<(&'a Indexed<Job>, Scope)>,
}

impl<'a> NodeEvals<'a> {
    /// Looks through all jobs once, for any number of nodes.
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let system_jobs = snapshot
            .jobs()
            .filter(|job| job.value.job_type == JobType::System && !job.value.stop)
            .map(|job| (&**job, Scope::new(&job.value)))
            .collect();
        Self {
            snapshot,
            system_jobs,
        }
    }

    /// Returns an evaluation for each job that has something on `node`, and for each system job
    /// that may have.
    ///
    /// Shape: one a job, ordered by namespace and job id; `next_id` draws their ids, and their
    /// trace is the caller's to fill in.
    /// Source: Nomad's public behaviour: allocations of a service count until both sides have
    /// ended, those of a batch job until the node's has. Ours: those of a sysbatch job as well,
    /// and those of a system job that were told to stop, else they run for ever on a dead node.
    pub fn of_node(
        &self,
        node: &Node,
        now: Timestamp,
        next_id: &mut dyn FnMut() -> EvalId,
    ) -> Vec<Evaluation> {
        let mut jobs = BTreeMap::<JobKey, (JobType, u8)>::new();
        for view in self.snapshot.allocs_by_node(node.id) {
            let (job_type, priority) = job_of(self.snapshot, view);
            if counts(job_type, view) {
                jobs.insert(view.alloc.job_key(), (job_type, priority));
            }
        }
        for (job, scope) in &self.system_jobs {
            if scope.contains(node) {
                jobs.insert(job.value.key(), (JobType::System, job.value.priority));
            }
        }
        jobs.into_iter()
            .map(|(job, (job_type, priority))| Evaluation {
                node_id: Some(node.id),
                ..Evaluation::pending(
                    next_id(),
                    job,
                    job_type,
                    priority,
                    TriggeredBy::NodeUpdate,
                    now,
                )
            })
            .collect()
    }
}

/// Tells whether a node that is down has an allocation that nobody was told to look at since.
pub(crate) fn is_owed(snapshot: &Snapshot, node: &Indexed<Node>, now: Timestamp) -> bool {
    snapshot.allocs_by_node(node.value.id).any(|view| {
        let (job_type, _) = job_of(snapshot, view);
        !view.is_client_terminal()
            && counts(job_type, view)
            && snapshot.looked_at(&view.alloc.job_key(), now) < node.modify_index
    })
}

fn counts(job_type: JobType, view: &AllocView) -> bool {
    match job_type {
        JobType::Service => !(view.alloc.is_server_terminal() && view.is_client_terminal()),
        JobType::Batch | JobType::Sysbatch => !view.is_client_terminal(),
        // Whatever is wanted is looked at wherever it may run. Of one that was told to stop, its
        // node may never say that it has.
        JobType::System => view.alloc.is_server_terminal() && !view.is_client_terminal(),
    }
}

/// Returns the type and priority of an allocation's job, even of one that was purged.
pub(crate) fn job_of(snapshot: &Snapshot, view: &AllocView) -> (JobType, u8) {
    let key = view.alloc.job_key();
    let job = snapshot
        .job_version(&key, view.alloc.job_version)
        .or_else(|| snapshot.job(&key));
    match job {
        Some(job) => (job.value.job_type, job.value.priority),
        None => (JobType::Service, DEFAULT_PRIORITY),
    }
}
