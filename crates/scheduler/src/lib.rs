//! From an evaluation to a plan: what has to change for a job, and on which nodes.
//!
//! Pure: [`schedule`] looks at one snapshot and one evaluation and returns what it wants written,
//! the evaluation's end included. Time and randomness are arguments, so a run repeats exactly.
//! The loop around it is `services/scheduler-worker`; [`Run`] is that loop's memory of how often a
//! plan was refused.
//!
//! In reading order: `reconcile` compares what the job has with what it wants; `in_place` says who
//! may take a new version as it runs; `rank` finds nodes, by what `config` says; `planner` writes the plan;
//! `outcome` says how the evaluation ends. Which nodes can run what is the crate `placement`'s business, which
//! the plan-applier shares.
//!
//! Serves service and batch jobs. Evaluations of system and sysbatch jobs fail with a description;
//! so do updates that ask for canaries.

mod cluster;
mod config;
mod draw;
mod in_place;
mod outcome;
mod planner;
mod rank;
mod reconcile;
mod run;

use std::collections::{BTreeMap, BTreeSet};

use model::job::JobType;
use model::{Evaluation, Indexed, Job, Plan, Timestamp, TriggeredBy};
use placement::Requirements;
use state::Snapshot;

pub use config::{Algorithm, Config};
use draw::Draw;
use in_place::InPlace;
use planner::Planner;
use reconcile::Context;
pub use reconcile::changes::DesiredUpdates;
pub use run::{Attempt, Run, Settled};

/// What one look at a job came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Never without an outcome for the evaluation, though it may change nothing else.
    pub plan: Plan,
    /// Task group → what the plan does about it, for people; empty when the evaluation fails.
    pub desired_updates: BTreeMap<String, DesiredUpdates>,
}

/// Decides what to do about the job of `eval`.
///
/// The same arguments give the same plan, ids included.
pub fn schedule(
    snapshot: &Snapshot,
    eval: &Indexed<Evaluation>,
    now: Timestamp,
    seed: u64,
) -> Decision {
    schedule_with(&Config::default(), snapshot, eval, now, seed)
}

/// As [`schedule`], the way the operator has chosen.
pub fn schedule_with(
    config: &Config,
    snapshot: &Snapshot,
    eval: &Indexed<Evaluation>,
    now: Timestamp,
    seed: u64,
) -> Decision {
    decide(config, snapshot, eval, now, seed, None)
}

/// As [`schedule_with`]; with `gives_up`, the plan only says that the evaluation failed for that reason,
/// and leaves a blocked one to try again.
pub(crate) fn decide(
    config: &Config,
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
    if let Some(reason) = unserved(&eval.value, job_type) {
        return failure(plan, &eval.value, now, reason);
    }
    let requirements = requirements(wanted);
    let batch = job_type == JobType::Batch;
    let draw = Draw::new(seed, eval.value.id, snapshot.index());
    let context = Context::new(snapshot, &eval.value, wanted, batch, now, draw);
    let mut in_place = InPlace::new(snapshot, &eval.value.job, &requirements);
    let (changes, draw) = context.reconcile(wanted, &mut in_place);
    if let Some(group) = changes.groups.iter().find(|group| group.needs_canaries) {
        return failure(plan, &eval.value, now, canaries_refused(&group.name));
    }
    let desired = changes
        .groups
        .iter()
        .map(|group| (group.name.clone(), group.desired));
    let desired_updates = desired.collect();
    let mut planner = Planner {
        snapshot,
        eval: &eval.value,
        requirements: &requirements,
        algorithm: config.algorithm(wanted.map_or("", |job| &job.value.node_pool)),
        now,
        draw,
        plan,
        failed: BTreeMap::new(),
        queued: BTreeMap::new(),
        cluster: None,
        stopped: BTreeSet::new(),
        placed: Vec::new(),
    };
    planner.carry_out(wanted, changes);
    match gives_up {
        None => outcome::settle(&mut planner),
        Some(reason) => outcome::give_up(&mut planner, reason),
    }
    Decision {
        plan: planner.plan,
        desired_updates,
    }
}

fn failure(mut plan: Plan, eval: &Evaluation, now: Timestamp, reason: String) -> Decision {
    outcome::fail(&mut plan, eval, now, reason);
    Decision {
        plan,
        desired_updates: BTreeMap::new(),
    }
}

fn canaries_refused(group: &str) -> String {
    format!(
        "task group {group:?} asks for canaries, which this version does not place: set update.canary = 0 and register the job again"
    )
}

fn requirements(job: Option<&Indexed<Job>>) -> BTreeMap<String, Requirements> {
    let Some(job) = job else {
        return BTreeMap::new();
    };
    let groups = job.value.task_groups.iter();
    groups
        .map(|group| (group.name.clone(), Requirements::new(&job.value, group)))
        .collect()
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
fn unserved(eval: &Evaluation, job_type: JobType) -> Option<String> {
    match job_type {
        JobType::System | JobType::Sysbatch => Some(format!(
            "this version schedules no {} jobs: set type to \"service\" or \"batch\"",
            job_type.as_str()
        )),
        JobType::Service | JobType::Batch if eval.triggered_by == TriggeredBy::Scheduled => {
            Some(format!(
                "scheduler cannot handle '{}' evaluation reason",
                eval.triggered_by.as_str()
            ))
        }
        JobType::Service | JobType::Batch => None,
    }
}
