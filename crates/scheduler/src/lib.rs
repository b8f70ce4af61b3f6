//! From an evaluation to a plan: what has to change for a job, and on which nodes.
//!
//! Pure: [`schedule`] looks at one snapshot and one evaluation and returns what it wants written,
//! the evaluation's end included. Time and randomness are arguments, so a run repeats exactly.
//! The loop around it is `services/scheduler-worker`; [`Run`] is that loop's memory of how often a
//! plan was refused.
//!
//! In reading order: `reconcile` compares what the job has with what it wants; `in_place` says who
//! may take a new version as it runs; `rank` finds nodes, by what the operator has chosen and as
//! freely as `choice` says; `planner` writes the plan;
//! `generation` and `beside` say which of a job's allocations need not be kept apart;
//! `preempt` says who has to make way for a job that is more important, and `evict` writes that down;
//! `outcome` says how the evaluation ends. Which nodes can run what is the crate `placement`'s business, which
//! the plan-applier shares.
//!
//! `system` is the same for jobs that want to be on every node. [`explain`] asks every node for an
//! evaluation's sake, for people; nothing is decided there.

mod beside;
mod choice;
mod cluster;
mod draw;
mod evict;
pub mod explain;
mod generation;
mod in_place;
mod outcome;
mod planner;
mod preempt;
mod rank;
mod reconcile;
mod run;
mod system;

use std::collections::{BTreeMap, BTreeSet};

use model::job::JobType;
use model::{
    Evaluation, Indexed, Job, JobKey, Plan, SchedulerConfiguration, Timestamp, TriggeredBy,
};
use placement::Requirements;
use state::Snapshot;

#[doc(hidden)]
pub use choice::Choice;
use draw::Draw;
use generation::Generations;
use in_place::InPlace;
use planner::Planner;
use preempt::Preempted;
use reconcile::Context;
pub use reconcile::changes::DesiredUpdates;
use reconcile::changes::{GroupChanges, JobChanges};
pub use run::{Attempt, Run, Settled};
use system::{SystemChanges, SystemReconciler};

/// What one look at a job came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Never without an outcome for the evaluation, though it may change nothing else.
    pub plan: Plan,
    /// Task group → what the plan does about it, for people; empty when the evaluation fails.
    pub desired_updates: BTreeMap<String, DesiredUpdates>,
}

/// Decides what to do about the job of `eval`, the way that operators have chosen.
///
/// The same arguments give the same plan, ids included.
pub fn schedule(
    snapshot: &Snapshot,
    eval: &Indexed<Evaluation>,
    now: Timestamp,
    seed: u64,
) -> Decision {
    schedule_with(snapshot.scheduler_config(), snapshot, eval, now, seed)
}

/// As [`schedule`], by another configuration than the snapshot's.
pub fn schedule_with(
    config: &SchedulerConfiguration,
    snapshot: &Snapshot,
    eval: &Indexed<Evaluation>,
    now: Timestamp,
    seed: u64,
) -> Decision {
    decide(config, Choice::FIRST, snapshot, eval, now, seed, None)
}

/// As [`schedule_with`]; with `gives_up`, the plan only says that the evaluation failed for that reason,
/// and leaves a blocked one to try again.
pub(crate) fn decide(
    config: &SchedulerConfiguration,
    choice: Choice,
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
    let runs_to_end = matches!(job_type, JobType::Batch | JobType::Sysbatch);
    let draw = Draw::new(seed, eval.value.id, snapshot.index()).with_choice(choice);
    let context = Context::new(snapshot, &eval.value, wanted, runs_to_end, now, draw);
    let is_everywhere = matches!(job_type, JobType::System | JobType::Sysbatch);
    let leaving = context.leaving(wanted, &requirements);
    let mut in_place = InPlace::new(snapshot, &eval.value.job, &requirements, leaving);
    let (changes, draw) = match wanted.filter(|_| is_everywhere) {
        Some(job) => {
            let reconciler = SystemReconciler {
                context,
                job,
                requirements: &requirements,
                in_place: &mut in_place,
            };
            let (changes, draw) = reconciler.run();
            (Changes::Everywhere(job, changes), draw)
        }
        None => {
            let (changes, draw) = context.reconcile(wanted, &mut in_place);
            (Changes::Anywhere(changes), draw)
        }
    };
    let older = older_requirements(snapshot, &eval.value.job, changes.groups());
    let groups = changes.groups().iter();
    let mut desired_updates: BTreeMap<_, _> = groups
        .map(|group| (group.name.clone(), group.desired))
        .collect();
    let mut planner = Planner {
        snapshot,
        eval: &eval.value,
        requirements: &requirements,
        older: &older,
        config,
        algorithm: config.algorithm(wanted.map_or("", |job| &job.value.node_pool)),
        now,
        draw,
        plan,
        failed: BTreeMap::new(),
        queued: BTreeMap::new(),
        cluster: None,
        stopped: BTreeSet::new(),
        placed: Vec::new(),
        canaries: Vec::new(),
        generations: Generations::default(),
        namesakes: std::cell::OnceCell::new(),
        waiting_nodes: None,
        preempts: config.preemption.is_enabled(job_type),
        preempted: Preempted::default(),
        preemptions: BTreeMap::new(),
    };
    match changes {
        Changes::Anywhere(changes) => planner.carry_out(wanted, changes),
        Changes::Everywhere(job, changes) => planner.carry_out_everywhere(job, changes),
    }
    planner.spare_who_can_stay();
    match gives_up {
        None => outcome::settle(&mut planner),
        Some(reason) => outcome::give_up(&mut planner, reason),
    }
    for (group, count) in &planner.preemptions {
        if let Some(desired) = desired_updates.get_mut(group) {
            desired.preemptions = *count;
        }
    }
    Decision {
        plan: planner.plan,
        desired_updates,
    }
}

/// What has to change, and how its places are found.
enum Changes<'a> {
    /// Whichever node is best.
    Anywhere(JobChanges<'a>),
    /// Every node that can.
    Everywhere(&'a Indexed<Job>, SystemChanges<'a>),
}

impl<'a> Changes<'a> {
    fn groups(&self) -> &[GroupChanges<'a>] {
        match self {
            Self::Anywhere(changes) => &changes.groups,
            Self::Everywhere(_, changes) => &changes.job.groups,
        }
    }
}

fn failure(mut plan: Plan, eval: &Evaluation, now: Timestamp, reason: String) -> Decision {
    outcome::fail(&mut plan, eval, now, reason);
    Decision {
        plan,
        desired_updates: BTreeMap::new(),
    }
}

fn requirements(snapshot: &Snapshot, job: Option<&Indexed<Job>>) -> BTreeMap<String, Requirements> {
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

/// Returns what the older versions ask for that some placements get.
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

/// Returns why the evaluation cannot be looked at, if so.
fn unserved(eval: &Evaluation) -> Option<String> {
    let reason = eval.triggered_by;
    (reason == TriggeredBy::Scheduled).then(|| {
        format!(
            "scheduler cannot handle '{}' evaluation reason",
            reason.as_str()
        )
    })
}
