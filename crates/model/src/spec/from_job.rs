//! A stored job in the form that users write, with every default written out.

use std::collections::BTreeMap;

use super::{
    Affinity, Constraint, Device, DisconnectStrategy, EphemeralDisk, Job, Lifecycle, LogConfig,
    MigrateStrategy, Network, Port, ReschedulePolicy, Resources, RestartPolicy, Spread,
    SpreadTarget, Task, TaskGroup, UpdateStrategy, VolumeMount, VolumeRequest,
};
use crate::constraint;
use crate::job;

impl From<&job::Job> for Job {
    fn from(job: &job::Job) -> Self {
        Self {
            namespace: Some(job.namespace.clone()),
            id: Some(job.id.clone()),
            name: Some(job.name.clone()),
            region: Some(job.region.clone()),
            job_type: Some(job.job_type.as_str().to_owned()),
            priority: Some(i64::from(job.priority)),
            all_at_once: Some(job.all_at_once),
            datacenters: Some(job.datacenters.clone()),
            node_pool: Some(job.node_pool.clone()),
            constraints: list(&job.constraints),
            affinities: list(&job.affinities),
            spreads: list(&job.spreads),
            task_groups: list(&job.task_groups),
            // Groups carry their own by now.
            update: None,
            reschedule: None,
            migrate: None,
            meta: Some(job.meta.clone()),
            periodic: job.periodic.as_ref().map(Into::into),
            parameterized: job.parameterized.as_ref().map(Into::into),
            parent_id: some(&job.parent_id),
            dispatched: Some(job.dispatched),
            payload: some(&job.payload.to_base64()),
            dispatch_idempotency_token: some(&job.dispatch_token),
            stop: Some(job.stop),
            version: Some(job.version),
            submit_time: Some(job.submit_time.0),
        }
    }
}

/// An empty text is none.
fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn list<'a, T: 'a, U: From<&'a T>>(items: &'a [T]) -> Option<Vec<U>> {
    Some(items.iter().map(U::from).collect())
}

fn volumes(
    volumes: &BTreeMap<String, job::VolumeRequest>,
) -> Option<BTreeMap<String, VolumeRequest>> {
    let volumes = volumes.iter();
    let named = volumes.map(|(name, volume)| {
        let volume = VolumeRequest {
            name: Some(name.clone()),
            volume_type: Some(volume.volume_type.as_str().to_owned()),
            source: Some(volume.source.clone()),
            read_only: Some(volume.read_only),
            sticky: Some(volume.sticky),
            per_alloc: Some(volume.per_alloc),
            access_mode: volume.access_mode.map(|mode| mode.as_str().to_owned()),
            attachment_mode: volume.attachment_mode.map(|mode| mode.as_str().to_owned()),
        };
        (name.clone(), volume)
    });
    Some(named.collect())
}

impl From<&job::VolumeMount> for VolumeMount {
    fn from(mount: &job::VolumeMount) -> Self {
        Self {
            volume: Some(mount.volume.clone()),
            destination: Some(mount.destination.clone()),
            read_only: Some(mount.read_only),
            propagation_mode: Some("private".to_owned()),
        }
    }
}

impl From<&job::TaskGroup> for TaskGroup {
    fn from(group: &job::TaskGroup) -> Self {
        Self {
            name: Some(group.name.clone()),
            count: Some(i64::from(group.count)),
            tasks: list(&group.tasks),
            constraints: list(&group.constraints),
            affinities: list(&group.affinities),
            spreads: list(&group.spreads),
            networks: list(&group.networks),
            restart: Some((&group.restart).into()),
            reschedule: group.reschedule.as_ref().map(Into::into),
            update: group.update.as_ref().map(Into::into),
            migrate: group.migrate.as_ref().map(Into::into),
            disconnect: group.disconnect.as_ref().map(Into::into),
            ephemeral_disk: Some((&group.ephemeral_disk).into()),
            volumes: volumes(&group.volumes),
            meta: Some(group.meta.clone()),
            shutdown_delay: Some(group.shutdown_delay.into()),
            max_run_duration: group.max_run_duration.map(Into::into),
            scaling: group.scaling.as_ref().map(Into::into),
        }
    }
}

impl From<&job::Task> for Task {
    fn from(task: &job::Task) -> Self {
        Self {
            name: Some(task.name.clone()),
            driver: Some(task.driver.clone()),
            user: Some(task.user.clone()),
            config: Some(task.config.clone()),
            env: Some(task.env.clone()),
            meta: Some(task.meta.clone()),
            constraints: list(&task.constraints),
            affinities: list(&task.affinities),
            resources: Some((&task.resources).into()),
            restart: Some((&task.restart).into()),
            kill_timeout: Some(task.kill_timeout.into()),
            kill_signal: Some(task.kill_signal.clone()),
            leader: Some(task.leader),
            shutdown_delay: Some(task.shutdown_delay.into()),
            lifecycle: task.lifecycle.as_ref().map(Into::into),
            logs: Some((&task.logs).into()),
            volume_mounts: list(&task.volume_mounts),
            dispatch_payload: task.dispatch_payload.as_ref().map(Into::into),
        }
    }
}

impl From<&job::TaskResources> for Resources {
    fn from(resources: &job::TaskResources) -> Self {
        Self {
            cpu: Some(i64::from(resources.cpu_mhz)),
            memory: Some(i64::from(resources.memory_mib)),
            memory_max: Some(resources.memory_max.into()),
            cores: Some(i64::from(resources.cores)),
            devices: list(&resources.devices),
        }
    }
}

impl From<&job::DeviceRequest> for Device {
    fn from(request: &job::DeviceRequest) -> Self {
        Self {
            name: Some(request.name.clone()),
            count: Some(i64::try_from(request.count).unwrap_or(i64::MAX)),
            constraints: list(&request.constraints),
            affinities: list(&request.affinities),
        }
    }
}

impl From<&job::Lifecycle> for Lifecycle {
    fn from(lifecycle: &job::Lifecycle) -> Self {
        let hook = match lifecycle.hook {
            job::LifecycleHook::Prestart => "prestart",
            job::LifecycleHook::Poststart => "poststart",
            job::LifecycleHook::Poststop => "poststop",
        };
        Self {
            hook: Some(hook.to_owned()),
            sidecar: Some(lifecycle.sidecar),
        }
    }
}

impl From<&job::LogConfig> for LogConfig {
    fn from(logs: &job::LogConfig) -> Self {
        Self {
            max_files: Some(i64::from(logs.max_files)),
            max_file_size: Some(i64::from(logs.max_file_size_mib)),
            disabled: Some(logs.disabled),
        }
    }
}

impl From<&job::Network> for Network {
    fn from(network: &job::Network) -> Self {
        let (fixed, dynamic): (Vec<_>, Vec<_>) = network
            .ports
            .iter()
            .partition(|port| port.static_port.is_some());
        Self {
            mode: Some(network.mode.clone()),
            reserved_ports: Some(fixed.into_iter().map(Port::from).collect()),
            dynamic_ports: Some(dynamic.into_iter().map(Port::from).collect()),
        }
    }
}

impl From<&job::Port> for Port {
    fn from(port: &job::Port) -> Self {
        Self {
            label: Some(port.label.clone()),
            value: port.static_port.map(i64::from),
            to: port.to.map(i64::from),
            host_network: Some(port.host_network.clone()),
            ignore_collision: Some(port.ignore_collision),
        }
    }
}

impl From<&job::RestartPolicy> for RestartPolicy {
    fn from(policy: &job::RestartPolicy) -> Self {
        let mode = match policy.mode {
            job::RestartMode::Delay => "delay",
            job::RestartMode::Fail => "fail",
        };
        Self {
            attempts: Some(i64::from(policy.attempts)),
            interval: Some(policy.interval.into()),
            delay: Some(policy.delay.into()),
            mode: Some(mode.to_owned()),
        }
    }
}

impl From<&job::ReschedulePolicy> for ReschedulePolicy {
    fn from(policy: &job::ReschedulePolicy) -> Self {
        let function = match policy.delay_function {
            job::DelayFunction::Constant => "constant",
            job::DelayFunction::Exponential => "exponential",
            job::DelayFunction::Fibonacci => "fibonacci",
        };
        Self {
            attempts: Some(i64::from(policy.attempts)),
            interval: Some(policy.interval.into()),
            delay: Some(policy.delay.into()),
            delay_function: Some(function.to_owned()),
            max_delay: Some(policy.max_delay.into()),
            unlimited: Some(policy.unlimited),
        }
    }
}

fn health_check(check: job::HealthCheck) -> String {
    match check {
        job::HealthCheck::Checks => "checks",
        job::HealthCheck::TaskStates => "task_states",
        job::HealthCheck::Manual => "manual",
    }
    .to_owned()
}

impl From<&job::UpdateStrategy> for UpdateStrategy {
    fn from(update: &job::UpdateStrategy) -> Self {
        Self {
            max_parallel: Some(i64::from(update.max_parallel)),
            health_check: Some(health_check(update.health_check)),
            min_healthy_time: Some(update.min_healthy_time.into()),
            healthy_deadline: Some(update.healthy_deadline.into()),
            progress_deadline: Some(update.progress_deadline.into()),
            auto_revert: Some(update.auto_revert),
            auto_promote: Some(update.auto_promote),
            canary: Some(i64::from(update.canary)),
            stagger: Some(update.stagger.into()),
        }
    }
}

impl From<&job::MigrateStrategy> for MigrateStrategy {
    fn from(migrate: &job::MigrateStrategy) -> Self {
        Self {
            max_parallel: Some(i64::from(migrate.max_parallel)),
            health_check: Some(health_check(migrate.health_check)),
            min_healthy_time: Some(migrate.min_healthy_time.into()),
            healthy_deadline: Some(migrate.healthy_deadline.into()),
        }
    }
}

impl From<&job::DisconnectStrategy> for DisconnectStrategy {
    fn from(disconnect: &job::DisconnectStrategy) -> Self {
        let reconcile = match disconnect.reconcile {
            job::ReconcileChoice::BestScore => "best_score",
            job::ReconcileChoice::KeepOriginal => "keep_original",
            job::ReconcileChoice::KeepReplacement => "keep_replacement",
            job::ReconcileChoice::LongestRunning => "longest_running",
        };
        Self {
            lost_after: disconnect.lost_after.map(Into::into),
            stop_on_client_after: disconnect.stop_on_client_after.map(Into::into),
            replace: Some(disconnect.replace),
            reconcile: Some(reconcile.to_owned()),
        }
    }
}

impl From<&job::EphemeralDisk> for EphemeralDisk {
    fn from(disk: &job::EphemeralDisk) -> Self {
        Self {
            size: Some(i64::try_from(disk.size_mib).unwrap_or(i64::MAX)),
            sticky: Some(disk.sticky),
            migrate: Some(disk.migrate),
        }
    }
}

impl From<&constraint::Constraint> for Constraint {
    fn from(constraint: &constraint::Constraint) -> Self {
        Self {
            left: Some(constraint.left.clone()),
            operator: Some(constraint.operator.as_str().to_owned()),
            right: Some(constraint.right.clone()),
        }
    }
}

impl From<&constraint::Affinity> for Affinity {
    fn from(affinity: &constraint::Affinity) -> Self {
        Self {
            left: Some(affinity.left.clone()),
            operator: Some(affinity.operator.as_str().to_owned()),
            right: Some(affinity.right.clone()),
            weight: Some(i64::from(affinity.weight)),
        }
    }
}

impl From<&constraint::Spread> for Spread {
    fn from(spread: &constraint::Spread) -> Self {
        Self {
            attribute: Some(spread.attribute.clone()),
            weight: Some(i64::from(spread.weight)),
            targets: list(&spread.targets),
        }
    }
}

impl From<&constraint::SpreadTarget> for SpreadTarget {
    fn from(target: &constraint::SpreadTarget) -> Self {
        Self {
            value: Some(target.value.clone()),
            percent: Some(i64::from(target.percent)),
        }
    }
}
