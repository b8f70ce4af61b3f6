//! A task group: its count, its tasks, and the policies it has by the type of the job.

use std::collections::BTreeSet;
use std::time::Duration;

use model::job::{EphemeralDisk, JobType, Task, TaskGroup};

use super::inherited::Inherited;
use super::limits::MAX_TOTAL_COUNT;
use super::validation::{Path, Validation};
use super::{
    constraint, consul, disconnect, environment, lifecycle, name, network, rank, reschedule,
    restart, scaling, service, signal, task, update, vault, volume,
};

/// Source: Nomad's default and least size of an ephemeral disk, in MiB.
const DEFAULT_DISK_MIB: u64 = 300;
const MIN_DISK_MIB: u64 = 10;

pub(super) fn group(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::TaskGroup,
    inherited: &Inherited<'_>,
) -> TaskGroup {
    let job_type = inherited.job_type;
    let name = name::directory(check, path, "Task group", spec.name.as_deref());
    let least = spec.scaling.as_ref().and_then(|scaling| scaling.min);
    let count = count(check, path, &name, spec.count.or(least), job_type);
    let ranks = rank::Ranks::of(&spec.affinities, &spec.spreads);
    ranks.refuse_for_system(check, path, job_type);
    let restart = restart::group(check, path, spec.restart.as_ref(), inherited);
    let update = update::update(check, path, spec.update.as_ref(), inherited);
    let ephemeral_disk = ephemeral_disk(check, path, spec.ephemeral_disk.as_ref());
    let canaries = update.is_some_and(|update| update.canary > 0);
    let volumes = volume::volumes(
        check,
        path,
        &spec.volumes,
        volume::GroupFacts {
            job_type,
            canaries,
            count,
        },
    );
    let networks = network::networks(check, path, &spec.networks);
    let ports = networks.iter().flat_map(|network| &network.ports);
    let ports: BTreeSet<&str> = ports.map(|port| port.label.as_str()).collect();
    let group_context = task::GroupContext {
        job_type,
        job_name: inherited.job_name,
        ports: &ports,
        group_name: &name,
        restart: &restart,
        progress_deadline: update.map(|update| update.progress_deadline),
        disk_mib: ephemeral_disk.size_mib,
        volumes: &volumes,
    };
    let tasks = tasks(check, path, &spec.tasks, &group_context);
    network::check_tasks(check, path, &networks, &tasks);
    let mut constraints = constraint::constraints(
        check,
        path,
        &spec.constraints,
        constraint::Level::JobOrGroup,
    );
    signal::imply(&mut constraints, &tasks);
    let context = service::Context {
        job: inherited.job_name,
        group: &name,
        task: None,
        ports: &ports,
    };
    let services = service::services(check, path, &spec.services, &context);
    service::check_tasks(check, path, &services, &tasks);
    service::check_scripts(check, path, &services, &tasks);
    lifecycle::check_awaited(check, path, &services, &tasks);
    service::check_providers(check, path, &spec.services, &spec.tasks);
    service::imply(&mut constraints, &services, &tasks);
    vault::imply(&mut constraints, &tasks);
    TaskGroup {
        count,
        tasks,
        constraints,
        affinities: rank::affinities(check, path, &spec.affinities),
        spreads: rank::spreads(check, path, &spec.spreads),
        services,
        restart,
        reschedule: reschedule::reschedule(check, path, spec.reschedule.as_ref(), inherited),
        update,
        migrate: update::migrate(check, path, spec.migrate.as_ref(), inherited),
        disconnect: disconnect::disconnect(check, path, spec.disconnect.as_ref(), job_type),
        ephemeral_disk,
        meta: environment::variables(check, path, "meta", &spec.meta),
        shutdown_delay: shutdown_delay(check, path, spec.shutdown_delay.as_ref()),
        max_run_duration: max_run_duration(check, path, spec, job_type),
        scaling: scaling::scaling(check, path, spec.scaling.as_ref(), count, job_type),
        networks,
        consul: consul::consul(spec.consul.as_ref()),
        name,
        volumes,
    }
}

fn count(
    check: &mut Validation,
    path: &Path,
    name: &str,
    count: Option<i64>,
    job_type: JobType,
) -> u32 {
    let field = path.field("count");
    if count.is_some_and(|count| count < 0) {
        check.error(
            field,
            "Task group count can't be negative: write 0 for none",
        );
        return 1;
    }
    let most = i64::try_from(MAX_TOTAL_COUNT).unwrap_or(i64::MAX);
    if let Some(count) = count.filter(|count| *count > most) {
        let message = format!("must be between 0 and {MAX_TOTAL_COUNT}; got {count}: lower it");
        check.error(field, message);
        return 1;
    }
    let count = check.number(field.clone(), count, 1);
    if job_type == JobType::System && count > 1 {
        let message = format!(
            "Job task group {name} has count {count}. Count cannot exceed 1 with system \
             scheduler: it runs once on every node that fits",
        );
        check.error(field, message);
    }
    count
}

fn tasks(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::Task],
    group_context: &task::GroupContext<'_>,
) -> Vec<Task> {
    let field = path.field("task");
    if specs.is_empty() {
        check.error(
            &field,
            "Missing tasks for task group: add a task \"…\" block",
        );
    }
    let names = specs
        .iter()
        .map(|task| task.name.as_deref().unwrap_or_default());
    name::distinct(check, path, "task", names);
    let mut tasks = Vec::with_capacity(specs.len());
    for (position, spec) in specs.iter().enumerate() {
        let task_path = path.labelled("task", spec.name.as_deref(), position);
        tasks.push(task::task(check, &task_path, spec, group_context));
    }
    if !specs.is_empty() && specs.iter().all(|task| task.lifecycle.is_some()) {
        let message = format!(
            "Task group {} must have at least one main task: remove the lifecycle block of one \
             of its tasks",
            group_context.group_name,
        );
        check.error(&field, message);
    }
    if tasks.iter().filter(|task| task.leader).count() > 1 {
        let message = "Only one task may be marked as leader: leave leader = true on one of them";
        check.error(&field, message);
    }
    tasks
}

fn ephemeral_disk(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::EphemeralDisk>,
) -> EphemeralDisk {
    let field = path.block("ephemeral_disk").field("size");
    let size = spec.and_then(|disk| disk.size_mib);
    let size_mib = check.number(field.clone(), size, DEFAULT_DISK_MIB);
    if size_mib < MIN_DISK_MIB {
        let message = format!(
            "minimum DiskMB value is {MIN_DISK_MIB}; got {size_mib}: the size is in MB, leave it \
             out for {DEFAULT_DISK_MIB}",
        );
        check.error(field, message);
    }
    EphemeralDisk {
        size_mib,
        sticky: spec.and_then(|disk| disk.sticky).unwrap_or(false),
        migrate: spec.and_then(|disk| disk.migrate).unwrap_or(false),
    }
}

fn shutdown_delay(
    check: &mut Validation,
    path: &Path,
    duration: Option<&prost_types::Duration>,
) -> Duration {
    let message = "ShutdownDelay must be a positive value: leave it out for none";
    check
        .signed_duration(path.field("shutdown_delay"), duration, message)
        .unwrap_or_default()
}

fn max_run_duration(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::TaskGroup,
    job_type: JobType,
) -> Option<Duration> {
    let duration = spec.max_run_duration.as_ref()?;
    let field = path.field("max_run_duration");
    if !job_type.runs_to_end() {
        let message = format!(
            "Job type {:?} does not allow max_run_duration: remove it, or make the job a batch \
             or sysbatch one",
            job_type.as_str(),
        );
        check.error(field, message);
        return None;
    }
    let positive = "max_run_duration must be longer than zero: leave it out for no limit";
    let duration = check.signed_duration(field.clone(), Some(duration), positive)?;
    if duration.is_zero() {
        check.error(field, positive);
        return None;
    }
    Some(duration)
}
