//! The evaluations that a change of a node causes: one for each job that has something on it.

use std::collections::BTreeMap;

use model::{EvalId, Evaluation, JobKey, JobType, Node, Timestamp, TriggeredBy};
use placement::Scope;
use state::{AllocView, Entity, Key, Snapshot};

use crate::writes::Write;

/// Returns one evaluation for each job with something left to decide on the node, and for each
/// system job that may run there.
///
/// Shape: ordered by job, one each. `next_id` is called once for each.
/// Source: Nomad's public behaviour: a service counts until it has both been told to stop and
/// ended, a batch job until it has ended, a sysbatch job never.
pub fn node_evals(
    snapshot: &Snapshot,
    node: &Node,
    now: Timestamp,
    trace_parent: &str,
    mut next_id: impl FnMut() -> EvalId,
) -> Vec<Write> {
    let mut jobs: BTreeMap<JobKey, (JobType, u8)> = BTreeMap::new();
    for view in snapshot.allocs_by_node(node.id) {
        let key = view.alloc.job_key();
        let Some(job) = snapshot.job(&key) else {
            continue;
        };
        if counts(job.value.job_type, view) {
            jobs.insert(key, (job.value.job_type, job.value.priority));
        }
    }
    for job in snapshot.jobs().map(|job| &job.value) {
        let is_wanted = job.job_type == JobType::System && !job.stop;
        if is_wanted && Scope::new(job).contains(node) {
            jobs.insert(job.key(), (job.job_type, job.priority));
        }
    }
    jobs.into_iter()
        .map(|(key, (job_type, priority))| {
            let trigger = TriggeredBy::NodeUpdate;
            let mut eval = Evaluation::pending(next_id(), key, job_type, priority, trigger, now);
            eval.node_id = Some(node.id);
            trace_parent.clone_into(&mut eval.trace_parent);
            Write::Create {
                key: Key::Eval(eval.id),
                entity: Entity::Eval(Box::new(eval)),
            }
        })
        .collect()
}

fn counts(job_type: JobType, view: &AllocView) -> bool {
    match job_type {
        JobType::Service => !(view.alloc.is_server_terminal() && view.is_client_terminal()),
        JobType::Batch => !view.is_client_terminal(),
        JobType::System | JobType::Sysbatch => false,
    }
}
