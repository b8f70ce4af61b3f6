//! The decision about one evaluation: reconciles its job, and plans the changes.

use std::collections::BTreeMap;

use model::{
    Evaluation, Indexed, Job, JobKey, Plan, SchedulerConfiguration, Timestamp, TriggeredBy,
};
use placement::Requirements;
use state::Snapshot;

use crate::draft::Draft;
use crate::in_place::InPlace;
use crate::inputs::Inputs;
use crate::outcome;
use crate::planner::Planner;
use crate::reconcile::changes::{DesiredUpdates, GroupChanges, JobChanges};
use crate::reconcile::context::Context;
use crate::reconcile::job::{leaving, reconcile};
use crate::run_rng::RunRng;
use crate::selection::Selection;
use crate::system::changes::SystemChanges;
use crate::system::place::SystemPlanner;
use crate::system::reconciler::SystemReconciler;

/// The decision about one evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Always with an outcome for the evaluation, even if it changes nothing else.
    pub plan: Plan,
    /// Task group → changes of the plan, for people; empty when the evaluation fails.
    pub desired_updates: BTreeMap<String, DesiredUpdates>,
}

/// Decides about the job of `eval`, with the scheduler configuration of the snapshot.
///
/// Deterministic: the same arguments give the same plan, ids included.
pub fn schedule(
    snapshot: &Snapshot,
    eval: &Indexed<Evaluation>,
    now: Timestamp,
    seed: u64,
) -> Decision {
    schedule_with(snapshot.scheduler_config(), snapshot, eval, now, seed)
}

/// As [`schedule`], with another configuration than the snapshot's.
pub fn schedule_with(
    config: &SchedulerConfiguration,
    snapshot: &Snapshot,
    eval: &Indexed<Evaluation>,
    now: Timestamp,
    seed: u64,
) -> Decision {
    decide(config, Selection::FIRST, snapshot, eval, now, seed, None)
}

/// As [`schedule_with`]; with `gives_up`, the plan only fails the evaluation for that reason, and adds a
/// blocked one that retries.
pub(crate) fn decide(
    config: &SchedulerConfiguration,
    selection: Selection,
    snapshot: &Snapshot,
    eval: &Indexed<Evaluation>,
    now: Timestamp,
    seed: u64,
    gives_up: Option<String>,
) -> Decision {
    let job = snapshot.job(&eval.value.job).map(AsRef::as_ref);
    let wanted = job.filter(|job| !job.value.stop);
    let plan = empty_plan(snapshot, eval, job);
    let job_type = job.map_or(eval.value.job_type, |job| job.value.job_type);
    if let Some(reason) = unserved(&eval.value) {
        return failure(plan, &eval.value, now, reason);
    }
    let requirements = requirements(snapshot, wanted);
    let runs_to_end = job_type.runs_to_end();
    let rng = RunRng::new(seed, eval.value.id, snapshot.index()).with_selection(selection);
    let context = Context::new(snapshot, &eval.value, wanted, runs_to_end, now, rng);
    let is_system = job_type.is_per_node();
    let leaving = leaving(&context, wanted, &requirements);
    let mut in_place = InPlace::new(snapshot, &eval.value.job, &requirements, leaving);
    let (changes, mut rng) = match wanted.filter(|_| is_system) {
        Some(job) => {
            let reconciler = SystemReconciler {
                context,
                job,
                requirements: &requirements,
                in_place: &mut in_place,
            };
            let (changes, rng) = reconciler.run();
            (Changes::System(job, changes), rng)
        }
        None => {
            let (changes, rng) = reconcile(context, wanted, &mut in_place);
            (Changes::ServiceOrBatch(changes), rng)
        }
    };
    let older = older_requirements(snapshot, &eval.value.job, changes.groups());
    let groups = changes.groups().iter();
    let mut desired_updates: BTreeMap<_, _> = groups
        .map(|group| (group.name.clone(), group.desired))
        .collect();
    let inputs = Inputs {
        snapshot,
        eval: &eval.value,
        now,
        config,
        algorithm: config.algorithm(wanted.map_or("", |job| &job.value.node_pool)),
        may_preempt: config.preemption.is_enabled(job_type),
        requirements: &requirements,
        older: &older,
    };
    let mut draft = Draft::new(plan);
    match changes {
        Changes::ServiceOrBatch(changes) => {
            Planner::new(inputs, &mut draft, &mut rng).execute(wanted, changes);
        }
        Changes::System(job, changes) => {
            SystemPlanner::new(inputs, &mut draft, &mut rng).execute(job, changes);
        }
    }
    draft.release_fitting_victims(&inputs);
    match gives_up {
        None => outcome::end_evaluation(&inputs, &mut draft, &mut rng),
        Some(reason) => outcome::give_up(&inputs, &mut draft, &mut rng, reason),
    }
    for (group, count) in draft.preemptions() {
        if let Some(desired) = desired_updates.get_mut(group) {
            desired.preemptions = *count;
        }
    }
    Decision {
        plan: draft.into_plan(),
        desired_updates,
    }
}

/// The changes of a job by the way nodes are found.
enum Changes<'a> {
    /// The best node for each placement.
    ServiceOrBatch(JobChanges<'a>),
    /// Every suitable node.
    System(&'a Indexed<Job>, SystemChanges<'a>),
}

impl<'a> Changes<'a> {
    fn groups(&self) -> &[GroupChanges<'a>] {
        match self {
            Self::ServiceOrBatch(changes) => &changes.groups,
            Self::System(_, changes) => &changes.job.groups,
        }
    }
}

fn failure(mut plan: Plan, eval: &Evaluation, now: Timestamp, reason: String) -> Decision {
    let outcome = outcome::failed(eval, plan.snapshot_index, now, reason);
    plan.eval_outcome = Some(Box::new(outcome));
    Decision {
        plan,
        desired_updates: BTreeMap::new(),
    }
}

pub(crate) fn requirements(
    snapshot: &Snapshot,
    job: Option<&Indexed<Job>>,
) -> BTreeMap<String, Requirements> {
    let Some(job) = job else {
        return BTreeMap::new();
    };
    let groups = job.value.task_groups.iter();
    groups
        .map(|group| {
            let requirements = Requirements::new(&job.value, group).looking_in(snapshot);
            (group.name.clone(), requirements)
        })
        .collect()
}

/// Returns the requirements of older versions that are placed.
fn older_requirements(
    snapshot: &Snapshot,
    key: &JobKey,
    groups: &[GroupChanges<'_>],
) -> BTreeMap<(String, u64), Requirements> {
    let mut found = BTreeMap::new();
    for group in groups {
        for older in group.places.iter().filter_map(|ask| ask.older) {
            let job = snapshot.job_version(key, older.version);
            let old = job.and_then(|job| Some((job, job.value.task_group(&group.name)?)));
            if let Some((job, old_group)) = old {
                found
                    .entry((group.name.clone(), older.version))
                    .or_insert_with(|| {
                        Requirements::new(&job.value, old_group).looking_in(snapshot)
                    });
            }
        }
    }
    found
}

fn empty_plan(snapshot: &Snapshot, eval: &Indexed<Evaluation>, job: Option<&Indexed<Job>>) -> Plan {
    Plan {
        eval_id: eval.value.id,
        eval_token: String::new(),
        eval_modify_index: eval.modify_index,
        job: eval.value.job.clone(),
        priority: eval.value.priority,
        all_at_once: job.is_some_and(|job| job.value.all_at_once),
        snapshot_index: snapshot.index(),
        job_modify_index: job.map_or(0, |job| job.modify_index),
        stops: BTreeMap::new(),
        placements: BTreeMap::new(),
        preemptions: BTreeMap::new(),
        deployment: None,
        deployment_updates: Vec::new(),
        followup_evals: Vec::new(),
        eval_outcome: None,
        trace_parent: eval.value.trace_parent.clone(),
    }
}

/// Returns why the evaluation cannot be processed; `None`: it can.
fn unserved(eval: &Evaluation) -> Option<String> {
    let reason = eval.triggered_by;
    (reason == TriggeredBy::Scheduled).then(|| {
        format!(
            "scheduler cannot handle '{}' evaluation reason",
            reason.as_str()
        )
    })
}
