//! The evaluations that a change of a node causes: one for each job that it concerns.

use std::collections::BTreeMap;

use model::job::DEFAULT_PRIORITY;
use model::{EvalId, Evaluation, Indexed, Job, JobKey, JobType, Node, Timestamp, TriggeredBy};
use state::{AllocView, Snapshot};

use crate::scope::Scope;

/// Makes the evaluations of nodes' changes as of one snapshot.
#[derive(Debug)]
pub struct NodeEvals<'a> {
    snapshot: &'a Snapshot,
    /// System jobs run on every node in their scope, so each of these nodes affects them.
    system_jobs: Vec<(&'a Indexed<Job>, Scope)>,
}

impl<'a> NodeEvals<'a> {
    /// Scans all jobs once, for any number of nodes.
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

    /// Returns an evaluation for each job with an allocation on `node`, and for each system job with
    /// `node` in its scope.
    ///
    /// Shape: one for each job, ordered by namespace and job id; `next_id` draws their ids, and the
    /// caller sets their trace.
    /// Source: Nomad's public behaviour: allocations of a service count until both sides have
    /// ended, those of a batch job until the node's has. Ours: those of a sysbatch job as well,
    /// and those of a system job that the server stops, else they run for ever on a dead node.
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

/// Tells whether an allocation of a job of this type needs an evaluation when its node changes.
pub fn counts(job_type: JobType, view: &AllocView) -> bool {
    match job_type {
        JobType::Service => !(view.alloc.is_server_terminal() && view.is_client_terminal()),
        JobType::Batch | JobType::Sysbatch => !view.is_client_terminal(),
        // A wanted one follows from the job's scope. The node of one that the server stops may
        // never report its end.
        JobType::System => view.alloc.is_server_terminal() && !view.is_client_terminal(),
    }
}

/// Returns the type and priority of an allocation's job, even of one that was purged.
pub fn job_of(snapshot: &Snapshot, view: &AllocView) -> (JobType, u8) {
    let key = view.alloc.job_key();
    let job = snapshot
        .job_version(&key, view.alloc.job_version)
        .or_else(|| snapshot.job(&key));
    match job {
        Some(job) => (job.value.job_type, job.value.priority),
        None => (JobType::Service, DEFAULT_PRIORITY),
    }
}
