//! The load of a worker: evaluations that it takes at once, quick evaluations and small plans.

use model::{EvalId, JobType, Plan};
use state::Snapshot;

/// Evaluations to be scheduled, for each that is scheduled at a time: the next ones come while a small
/// one is scheduled, which takes less than the way to the eval-broker and back.
const AHEAD: u32 = 4;

/// Evaluations in flight for each that is scheduled at a time: a small one takes some hundred microseconds
/// to schedule, and some ten milliseconds until its plan is committed.
const IN_HAND: u32 = 64;

/// Placements, stops and evictions of a plan beside which the next evaluation is scheduled before the
/// plan-applier has answered. More would fill the nodes that the next ones choose: a large plan keeps
/// its permit until its answer.
const SMALL_PLAN: usize = 8;

/// Nodes, and allocations of the job, up to which a small evaluation is scheduled at once: a placement
/// among 10,000 nodes takes a quarter of a millisecond.
const QUICK_NODES: usize = 10_000;
const QUICK_ALLOCS: usize = 64;

/// The evaluations that one worker has: those to be scheduled, few, so that the eval-broker keeps their
/// order, and those whose small plans wait for the plan-applier, many, so that its transactions hold many
/// plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    in_hand: u32,
    /// Evaluations whose plan is not submitted yet, or is large.
    unscheduled: u32,
    unscheduled_max: u32,
    in_hand_max: u32,
}

impl Load {
    /// Returns the empty load of a worker that schedules `workers` evaluations at a time, and takes at most
    /// `credit_max`.
    pub fn new(workers: u32, credit_max: u32) -> Self {
        Self {
            in_hand: 0,
            unscheduled: 0,
            unscheduled_max: workers.saturating_mul(AHEAD).min(credit_max),
            in_hand_max: workers.saturating_mul(IN_HAND).min(credit_max),
        }
    }

    /// Counts an evaluation that has arrived.
    pub fn start(&mut self) {
        self.in_hand += 1;
        self.unscheduled += 1;
    }

    /// Counts an evaluation whose small plan is submitted, or that has ended without one. Each has to be
    /// counted once, before or after its end.
    pub fn scheduled(&mut self) {
        self.unscheduled -= 1;
    }

    /// Counts the end of an evaluation.
    pub fn end(&mut self) {
        self.in_hand -= 1;
    }

    /// Returns the number of evaluations that are not scheduled.
    pub fn unscheduled(&self) -> u32 {
        self.unscheduled
    }

    /// Returns the number of further evaluations that the worker takes, beside `credit` that are granted.
    pub fn room(&self, credit: u32) -> u32 {
        let to_schedule = self.unscheduled_max.saturating_sub(self.unscheduled);
        let in_hand = self.in_hand_max.saturating_sub(self.in_hand);
        to_schedule.min(in_hand).saturating_sub(credit)
    }

    /// Tells whether `credit` is too little to keep the worker busy until the next grant arrives.
    pub fn needs(&self, credit: u32) -> bool {
        credit * 2 < self.unscheduled_max
    }
}

/// Tells whether the scheduler takes well below a millisecond: for a few allocations, among a bounded
/// number of nodes and of former allocations.
pub fn is_quick(snapshot: &Snapshot, eval_id: EvalId) -> bool {
    let eval = snapshot.eval(eval_id);
    let Some(job) = eval.and_then(|eval| snapshot.job(&eval.value.job)) else {
        return false;
    };
    let is_of_nodes = matches!(job.value.job_type, JobType::System | JobType::Sysbatch);
    let wanted: u64 = job
        .value
        .task_groups
        .iter()
        .map(|group| u64::from(group.count))
        .sum();
    let key = job.value.key();
    let known = snapshot.allocs_by_job(&key);
    !is_of_nodes
        && wanted <= SMALL_PLAN as u64
        && snapshot.node_count() <= QUICK_NODES
        && known.take(QUICK_ALLOCS + 1).count() <= QUICK_ALLOCS
}

/// Tells whether the next evaluation may be scheduled before the plan-applier has answered this plan.
pub fn is_small(plan: &Plan) -> bool {
    let stops = plan.stops.values().map(Vec::len).sum::<usize>();
    let preemptions = plan.preemptions.values().map(Vec::len).sum::<usize>();
    plan.placement_count() + stops + preemptions <= SMALL_PLAN
}

#[cfg(test)]
mod tests {
    use model::plan::Stop;
    use model::{AllocId, Job, NodeId};
    use test_kit::{Stored, builders};

    use super::*;

    #[test]
    fn a_scheduled_evaluation_makes_room_before_its_end() {
        let mut load = Load::new(1, 1_024);
        assert_eq!(load.room(0), 4);
        load.start();
        assert_eq!((load.room(0), load.room(3)), (3, 0));
        load.scheduled();
        assert_eq!(load.room(0), 4);
        load.end();
        assert_eq!((load.room(0), load.unscheduled()), (4, 0));
    }

    #[test]
    fn plans_without_an_answer_and_the_broker_s_credit_limit_the_room() {
        let mut load = Load::new(1, 1_024);
        for _ in 0..IN_HAND - 1 {
            load.start();
            load.scheduled();
        }
        assert_eq!(load.room(0), 1);
        load.start();
        load.scheduled();
        assert_eq!(load.room(0), 0);
        assert_eq!(Load::new(1_000, 100).room(0), 100);
    }

    #[test]
    fn credit_below_half_of_what_is_scheduled_ahead_needs_a_grant() {
        let load = Load::new(2, 1_024);
        assert!(load.needs(3) && !load.needs(4));
    }

    #[test]
    fn a_quick_evaluation_wants_few_allocations_of_a_job_that_is_known() {
        let mut stored = Stored::default();
        let mut quick = |job: &Job| {
            stored.put_job(job);
            let eval = builders::evaluation(1, job);
            stored.put_eval(&eval);
            is_quick(&stored.snapshot(), eval.id)
        };
        assert!(quick(&builders::service("web", 8)));
        assert!(!quick(&builders::service("many", 9)));
        let mut each = builders::service("each", 1);
        each.job_type = JobType::System;
        assert!(!quick(&each));
        assert!(!is_quick(
            &Stored::default().snapshot(),
            EvalId::from_random(9)
        ));
    }

    #[test]
    fn stops_and_evictions_count_like_placements() {
        let job = builders::service("web", 1);
        let mut plan = builders::plan(&builders::evaluation(1, &job));
        let node_id = NodeId::from_random(1);
        for number in 0..8 {
            let alloc = builders::allocation(number, &job, node_id);
            plan.placements.entry(node_id).or_default().push(alloc);
        }
        assert!(is_small(&plan));
        let stop = Stop {
            alloc_id: AllocId::from_random(9),
            description: String::new(),
            client_status: None,
            followup_eval_id: None,
            preempted_by: None,
        };
        plan.preemptions.entry(node_id).or_default().push(stop);
        assert!(!is_small(&plan));
    }
}
