//! One task: its driver and config, resources, lifecycle and how it is stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use duration::show;
use model::job::{JobType, LogConfig, RestartPolicy, Task, VolumeRequest};

use super::validation::{Path, Validation};
use super::{
    action, artifact, constraint, consul, csi_plugin, driver_config, environment, launches,
    lifecycle, name, rank, resources, restart, scaling, service, signal, template, vault, volume,
    workload_identity,
};

/// Source: Nomad's defaults.
const DEFAULT_KILL_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_LOG_FILES: u32 = 10;
const DEFAULT_LOG_FILE_MIB: u32 = 10;

/// The facts of group and job that the checks of a task need.
pub(super) struct GroupContext<'a> {
    pub(super) job_type: JobType,
    pub(super) job_name: &'a str,
    /// Labels of the group's ports.
    pub(super) ports: &'a BTreeSet<&'a str>,
    pub(super) group_name: &'a str,
    pub(super) restart: &'a RestartPolicy,
    pub(super) progress_deadline: Option<Duration>,
    pub(super) disk_mib: u64,
    pub(super) volumes: &'a BTreeMap<String, VolumeRequest>,
}

/// The longest name of a task. Nodes use it in names of files, which have at most 255 bytes: the
/// longest is `<allocation id>.<task>.<attempt>`, with 36 and 10 bytes.
const MAX_NAME_BYTES: usize = 200;

pub(super) fn task(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Task,
    group_context: &GroupContext<'_>,
) -> Task {
    let name = name::directory(check, path, "Task", spec.name.as_deref());
    if name.len() > MAX_NAME_BYTES {
        let message = format!(
            "Task name has {} bytes, more than {MAX_NAME_BYTES}: shorten it",
            name.len()
        );
        check.error(path.field("name"), message);
    }
    if name == "alloc" {
        let message = "Task cannot be named \"alloc\": that is the directory its group shares";
        check.error(path.field("name"), message);
    }
    let ranks = rank::Ranks::of(&spec.affinities, &[]);
    ranks.refuse_for_system(check, path, group_context.job_type);
    let full_name = format!("{}.{name}", group_context.group_name);
    let driver = driver(check, path, spec.driver.as_deref(), &full_name);
    let config = driver_config::config(check, path, &driver, spec.config.as_ref());
    let identities = workload_identity::identities(check, path, spec);
    let resources = resources::resources(check, path, spec.resources.as_ref(), &full_name);
    let own_ports = resources.networks.iter().flat_map(|network| &network.ports);
    let own_ports = own_ports.map(|port| port.label.as_str());
    let ports = group_context
        .ports
        .iter()
        .copied()
        .chain(own_ports)
        .collect();
    let context = service::Context {
        job: group_context.job_name,
        group: group_context.group_name,
        task: Some(&name),
        ports: &ports,
    };
    let services = service::services(check, path, &spec.services, &context);
    Task {
        driver,
        user: spec.user.clone().unwrap_or_default(),
        config,
        env: environment::variables(check, path, "env", &spec.env),
        meta: environment::variables(check, path, "meta", &spec.meta),
        constraints: constraint::constraints(
            check,
            path,
            &spec.constraints,
            constraint::Level::Task,
        ),
        affinities: rank::affinities(check, path, &spec.affinities),
        resources,
        restart: restart::task(check, path, spec.restart.as_ref(), group_context.restart),
        kill_timeout: kill_timeout(check, path, spec.kill_timeout.as_ref(), group_context),
        kill_signal: kill_signal(check, path, spec.kill_signal.as_deref()),
        leader: leader(check, path, spec),
        shutdown_delay: check
            .signed_duration(
                path.field("shutdown_delay"),
                spec.shutdown_delay.as_ref(),
                "ShutdownDelay must be a positive value: leave it out for none",
            )
            .unwrap_or_default(),
        lifecycle: lifecycle::lifecycle(check, path, spec.lifecycle.as_ref()),
        logs: logs(check, path, spec.logs.as_ref(), group_context.disk_mib),
        name,
        volume_mounts: volume::mounts(check, path, &spec.volume_mounts, group_context.volumes),
        dispatch_payload: launches::dispatch_payload(check, path, spec.dispatch_payload.as_ref()),
        templates: template::templates(check, path, &spec.templates),
        services,
        artifacts: artifact::artifacts(check, path, &spec.artifacts),
        identities,
        vault: vault::vault(check, path, spec.vault.as_ref()),
        consul: consul::consul(spec.consul.as_ref()),
        scaling_policies: scaling::of_task(check, path, &spec.scaling_policies),
        csi_plugin: csi_plugin::csi_plugin(check, path, spec.csi_plugin.as_ref()),
        actions: action::actions(check, path, &spec.actions),
    }
}

/// Reads the driver. Another than those of this version is accepted: a plugin or a later version of
/// the node may have it, and the scheduler knows which node does.
fn driver(check: &mut Validation, path: &Path, driver: Option<&str>, task: &str) -> String {
    let driver = driver.unwrap_or_default();
    let known = driver_config::names();
    if driver.is_empty() {
        let message = format!("Missing task driver: write driver = {known}");
        check.error(path.field("driver"), message);
    } else if !driver_config::is_known(driver) {
        check.warn(format!(
            "Task {task:?}: nodes of this version have no driver {driver:?}, so its group waits for \
             a node with a plugin that provides it. Drivers of this version: {known}"
        ));
    }
    driver.to_owned()
}

fn kill_timeout(
    check: &mut Validation,
    path: &Path,
    duration: Option<&prost_types::Duration>,
    group_context: &GroupContext<'_>,
) -> Duration {
    let field = path.field("kill_timeout");
    let kill_timeout = check.duration(field.clone(), duration, DEFAULT_KILL_TIMEOUT);
    let deadline = group_context
        .progress_deadline
        .filter(|deadline| !deadline.is_zero());
    if group_context.job_type == JobType::Service
        && let Some(deadline) = deadline
        && kill_timeout > deadline
    {
        let message = format!(
            "KillTimout ({}) longer than the group's ProgressDeadline ({}): shorten kill_timeout, \
             or raise progress_deadline in the update block",
            show(kill_timeout),
            show(deadline),
        );
        check.error(field, message);
    }
    kill_timeout
}

fn kill_signal(check: &mut Validation, path: &Path, name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    if let Some(problem) = signal::problem(name) {
        check.error(path.field("kill_signal"), problem);
    }
    name.to_owned()
}

fn leader(check: &mut Validation, path: &Path, spec: &job_fields::Task) -> bool {
    let leader = spec.leader.unwrap_or(false);
    if leader && spec.lifecycle.is_some() {
        let message = "a task with a lifecycle block cannot be the leader: mark a main task";
        check.error(path.field("leader"), message);
    }
    leader
}

fn logs(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::LogConfig>,
    disk_mib: u64,
) -> LogConfig {
    let path = path.block("logs");
    let none = job_fields::LogConfig::default();
    let spec = spec.unwrap_or(&none);
    let logs = LogConfig {
        max_files: check.number(path.field("max_files"), spec.max_files, DEFAULT_LOG_FILES),
        max_file_size_mib: check.number(
            path.field("max_file_size"),
            spec.max_file_size_mib,
            DEFAULT_LOG_FILE_MIB,
        ),
        disabled: spec.disabled.unwrap_or(false),
    };
    if logs.max_files < 1 {
        let message = format!("minimum number of files is 1; got {}", logs.max_files);
        check.error(
            path.field("max_files"),
            format!("{message}: or write disabled = true"),
        );
    }
    if logs.max_file_size_mib < 1 {
        let message = format!("minimum file size is 1MB; got {}", logs.max_file_size_mib);
        check.error(
            path.field("max_file_size"),
            format!("{message}: or write disabled = true"),
        );
    }
    let total_mib = u64::from(logs.max_files) * u64::from(logs.max_file_size_mib);
    if !logs.disabled && total_mib >= disk_mib {
        let message = format!(
            "log storage ({total_mib} MB) must be less than requested disk capacity ({disk_mib} \
             MB): lower max_files or max_file_size, or raise the group's ephemeral_disk size",
        );
        check.error(path, message);
    }
    logs
}
