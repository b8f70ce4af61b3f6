//! What is written for those that make way: their end, and that somebody looks at their jobs.

use std::collections::BTreeMap;

use model::{EvalId, Evaluation, JobKey, Plan, Timestamp, TriggeredBy};
use state::{Entity, Key, Snapshot};

use crate::op::Op;
use crate::verify::writes::Unit;

/// How many of one job are written together with an evaluation. A unit must fit into a transaction;
/// each is a few hundred bytes.
const TOGETHER_MAX: usize = 256;

/// Evictions of one plan, by the jobs that lose something.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    by_job: BTreeMap<JobKey, Vec<Op>>,
}

impl Evictions {
    /// Adds the write that evicts an allocation of `job`.
    pub(crate) fn add(&mut self, job: JobKey, op: Op) {
        self.by_job.entry(job).or_default().push(op);
    }

    /// Returns the writes, each with the evaluation that finds another place, if the job still exists.
    ///
    /// They are never cut apart: an evaluation before its evictions would find nothing to do, and
    /// evictions without one would be noticed by nobody.
    pub(crate) fn into_units(self, snapshot: &Snapshot, plan: &Plan, now: Timestamp) -> Vec<Unit> {
        let mut units = Vec::new();
        for (job, mut ops) in self.by_job {
            while !ops.is_empty() {
                let rest = ops.split_off(ops.len().min(TOGETHER_MAX));
                ops.extend(evaluation(snapshot, plan, &job, &ops, now));
                units.push(Unit {
                    ops,
                    node_check: None,
                });
                ops = rest;
            }
        }
        units
    }
}

fn evaluation(
    snapshot: &Snapshot,
    plan: &Plan,
    key: &JobKey,
    evictions: &[Op],
    now: Timestamp,
) -> Option<Op> {
    let job = &snapshot.job(key)?.value;
    let Some(Key::Alloc(first)) = evictions.first().map(Op::key) else {
        return None;
    };
    // Two random numbers make a third, and who verifies the plan again makes the same: an allocation
    // is evicted once.
    let id = EvalId::from_random(plan.eval_id.0.as_u128() ^ first.0.as_u128());
    let mut eval = Evaluation::pending(
        id,
        key.clone(),
        job.job_type,
        job.priority,
        TriggeredBy::Preemption,
        now,
    );
    eval.previous_eval = Some(plan.eval_id);
    eval.trace_parent.clone_from(&plan.trace_parent);
    Some(Op::Create {
        key: Key::Eval(id),
        entity: Entity::Eval(Box::new(eval)),
    })
}
