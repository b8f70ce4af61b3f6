//! Writes of evictions: the end of each victim, and an evaluation for its job.

use std::collections::BTreeMap;

use model::{EvalId, Evaluation, JobKey, Plan, Timestamp, TriggeredBy};
use state::{Entity, Key, Snapshot, Write};

use crate::plan_writes::IndivisibleWrites;

/// Evictions of one job per evaluation. A unit must fit into a transaction; each eviction is a few
/// hundred bytes.
const TOGETHER_MAX: usize = 256;

/// Evictions of one plan by the victims' jobs.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    by_job: BTreeMap<JobKey, Vec<Write>>,
}

impl Evictions {
    /// Adds the eviction of an allocation of `job`.
    pub(crate) fn add(&mut self, job: JobKey, op: Write) {
        self.by_job.entry(job).or_default().push(op);
    }

    /// Returns the writes, with an evaluation for each job that still exists.
    ///
    /// A unit is never split: an evaluation before its evictions would find nothing to do, and
    /// evictions without an evaluation would not be replaced.
    pub(crate) fn into_units(
        self,
        snapshot: &Snapshot,
        plan: &Plan,
        now: Timestamp,
    ) -> Vec<IndivisibleWrites> {
        let mut units = Vec::new();
        for (job, mut ops) in self.by_job {
            while !ops.is_empty() {
                let rest = ops.split_off(ops.len().min(TOGETHER_MAX));
                ops.extend(evaluation(snapshot, plan, &job, &ops, now));
                units.push(IndivisibleWrites {
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
    evictions: &[Write],
    now: Timestamp,
) -> Option<Write> {
    let job = &snapshot.job(key)?.value;
    let Some(Key::Alloc(first)) = evictions.first().map(Write::key) else {
        return None;
    };
    // Deterministic, so that another verification of the plan creates the same id; and unique, because
    // an allocation is evicted once.
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
    Some(Write::Create {
        key: Key::Eval(id),
        entity: Entity::Eval(Box::new(eval)),
    })
}
