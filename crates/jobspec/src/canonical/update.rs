//! The update and migrate blocks: replacing an old version, and leaving a draining node.

use std::time::Duration;

use duration::show;
use model::job::{HealthCheck, JobType, MigrateStrategy, UpdateStrategy};

use super::inherited::Inherited;
use super::job_types::{allows_update, refusal};
use super::validation::{Path, Validation};

/// Source: Nomad's defaults of the update and migrate blocks.
const MIN_HEALTHY_TIME: Duration = Duration::from_secs(10);
const HEALTHY_DEADLINE: Duration = Duration::from_secs(5 * 60);
const PROGRESS_DEADLINE: Duration = Duration::from_secs(10 * 60);
const STAGGER: Duration = Duration::from_secs(30);

/// A system job's canaries are a share of its nodes.
const PER_CENT: u32 = 100;

const UPDATE_CHECKS: [(&str, HealthCheck); 3] = [
    ("checks", HealthCheck::Checks),
    ("task_states", HealthCheck::TaskStates),
    ("manual", HealthCheck::Manual),
];

/// Drains go on unattended, so migrations have no manual health.
const MIGRATE_CHECKS: [(&str, HealthCheck); 2] = [
    ("checks", HealthCheck::Checks),
    ("task_states", HealthCheck::TaskStates),
];

/// Returns the group's strategy: its own attributes over the job's, over the defaults.
pub(super) fn update(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::UpdateStrategy>,
    inherited: &Inherited<'_>,
) -> Option<UpdateStrategy> {
    let path = path.block("update");
    if !allows_update(inherited.job_type) {
        if spec.is_some() {
            check.error(path, refusal(inherited.job_type, "update"));
        }
        return None;
    }
    let merged = overlay(spec, inherited.update);
    let errors_before = check.error_count();
    let update = read(check, &path, &merged);
    if check.error_count() == errors_before {
        combination(check, &path, inherited.job_type, &update);
    }
    Some(update)
}

/// Returns the job's own strategy, as far as it is set over the defaults. Nothing is checked: a value
/// counts, and is checked, in the groups that inherit it.
pub(super) fn of_job(inherited: &Inherited<'_>) -> Option<UpdateStrategy> {
    let spec = inherited.update.cloned().unwrap_or_default();
    let mut unchecked = Validation::default();
    allows_update(inherited.job_type).then(|| read(&mut unchecked, &Path::root(), &spec))
}

fn overlay(
    group: Option<&job_fields::UpdateStrategy>,
    job: Option<&job_fields::UpdateStrategy>,
) -> job_fields::UpdateStrategy {
    let group = group.cloned().unwrap_or_default();
    let job = job.cloned().unwrap_or_default();
    job_fields::UpdateStrategy {
        max_parallel: group.max_parallel.or(job.max_parallel),
        health_check: group.health_check.or(job.health_check),
        min_healthy_time: group.min_healthy_time.or(job.min_healthy_time),
        healthy_deadline: group.healthy_deadline.or(job.healthy_deadline),
        progress_deadline: group.progress_deadline.or(job.progress_deadline),
        auto_revert: group.auto_revert.or(job.auto_revert),
        auto_promote: group.auto_promote.or(job.auto_promote),
        canary: group.canary.or(job.canary),
        stagger: group.stagger.or(job.stagger),
    }
}

fn read(check: &mut Validation, path: &Path, spec: &job_fields::UpdateStrategy) -> UpdateStrategy {
    UpdateStrategy {
        max_parallel: check.number(path.field("max_parallel"), spec.max_parallel, 1),
        health_check: health_check(check, path, spec.health_check.as_deref(), &UPDATE_CHECKS),
        min_healthy_time: check.duration(
            path.field("min_healthy_time"),
            spec.min_healthy_time.as_ref(),
            MIN_HEALTHY_TIME,
        ),
        healthy_deadline: check.duration(
            path.field("healthy_deadline"),
            spec.healthy_deadline.as_ref(),
            HEALTHY_DEADLINE,
        ),
        progress_deadline: check.duration(
            path.field("progress_deadline"),
            spec.progress_deadline.as_ref(),
            PROGRESS_DEADLINE,
        ),
        auto_revert: spec.auto_revert.unwrap_or(false),
        auto_promote: spec.auto_promote.unwrap_or(false),
        canary: check.number(path.field("canary"), spec.canary, 0),
        stagger: check.duration(path.field("stagger"), spec.stagger.as_ref(), STAGGER),
    }
}

fn health_check(
    check: &mut Validation,
    path: &Path,
    text: Option<&str>,
    choices: &[(&str, HealthCheck)],
) -> HealthCheck {
    // An empty text counts as absent, as it does in Nomad's JSON.
    let text = text.filter(|text| !text.is_empty());
    check.choice(
        path.field("health_check"),
        text,
        choices,
        HealthCheck::Checks,
        |given| {
            let names = suggest::list(choices.iter().map(|(name, _)| *name), "or");
            format!("Invalid health check given: {given:?}: use {names}")
        },
    )
}

fn combination(check: &mut Validation, path: &Path, job_type: JobType, update: &UpdateStrategy) {
    if update.auto_promote && update.canary == 0 {
        let message = "Auto Promote requires a Canary count greater than zero: set canary, or \
                       leave auto_promote out";
        check.error(path.field("auto_promote"), message);
    }
    if job_type == JobType::System && update.canary > PER_CENT {
        let message = format!(
            "canary = {} is more than all nodes: for a system job it is a percentage of them, 0 to \
             {PER_CENT}",
            update.canary,
        );
        check.error(path.field("canary"), message);
    }
    healthy_in_time(
        check,
        path,
        update.min_healthy_time,
        update.healthy_deadline,
    );
    if !update.progress_deadline.is_zero() && update.healthy_deadline >= update.progress_deadline {
        let message = format!(
            "healthy_deadline ({}) must be shorter than progress_deadline ({}): shorten it, or \
             raise progress_deadline (0 means no deadline)",
            show(update.healthy_deadline),
            show(update.progress_deadline),
        );
        check.error(path.field("healthy_deadline"), message);
    }
    if update.stagger.is_zero() {
        let message = "stagger must be longer than zero: leave it out for 30s";
        check.error(path.field("stagger"), message);
    }
}

fn healthy_in_time(check: &mut Validation, path: &Path, min_healthy: Duration, deadline: Duration) {
    if min_healthy >= deadline {
        let message = format!(
            "min_healthy_time ({}) must be shorter than healthy_deadline ({}): shorten it, or \
             raise healthy_deadline",
            show(min_healthy),
            show(deadline),
        );
        check.error(path.field("min_healthy_time"), message);
    }
}

/// Returns the group's migrate strategy: its own attributes over the job's, over the defaults.
pub(super) fn migrate(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::MigrateStrategy>,
    inherited: &Inherited<'_>,
) -> Option<MigrateStrategy> {
    let path = path.block("migrate");
    if inherited.job_type != JobType::Service {
        if spec.is_some() {
            check.error(path, refusal(inherited.job_type, "migrate"));
        }
        return None;
    }
    let group = spec.cloned().unwrap_or_default();
    let job = inherited.migrate.cloned().unwrap_or_default();
    let min_healthy_time = group.min_healthy_time.or(job.min_healthy_time);
    let healthy_deadline = group.healthy_deadline.or(job.healthy_deadline);
    let checks = group.health_check.or(job.health_check);
    let errors_before = check.error_count();
    let migrate = MigrateStrategy {
        max_parallel: check.number(
            path.field("max_parallel"),
            group.max_parallel.or(job.max_parallel),
            1,
        ),
        health_check: health_check(check, &path, checks.as_deref(), &MIGRATE_CHECKS),
        min_healthy_time: check.duration(
            path.field("min_healthy_time"),
            min_healthy_time.as_ref(),
            MIN_HEALTHY_TIME,
        ),
        healthy_deadline: check.duration(
            path.field("healthy_deadline"),
            healthy_deadline.as_ref(),
            HEALTHY_DEADLINE,
        ),
    };
    if check.error_count() == errors_before {
        healthy_in_time(
            check,
            &path,
            migrate.min_healthy_time,
            migrate.healthy_deadline,
        );
    }
    Some(migrate)
}
