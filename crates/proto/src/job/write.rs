//! [`spec::Job`] → [`v1::Job`], collecting everything that the wire cannot hold.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

use model::FieldErrors;
use model::spec::{self, Span};

use super::launches;
use crate::fields::{At as _, Read, nanoseconds_to_wire, wrong};
use crate::json::{self, LargeInteger};
use crate::v1;

/// Whose job it is.
#[derive(Clone, Copy)]
pub(super) enum Mode<'a> {
    /// A user's, on its way in: what cannot be sent exactly is an error; spans that are a text are
    /// read by this function.
    Given(&'a dyn Fn(&str) -> Result<i64, String>),
    /// The store's, on its way out: always possible.
    Stored,
}

/// Gathers the errors of one message while the rest of it is written.
struct Writer<'a> {
    errors: FieldErrors,
    mode: Mode<'a>,
}

impl<'a> Writer<'a> {
    fn new(mode: Mode<'a>) -> Self {
        Self {
            errors: FieldErrors::default(),
            mode,
        }
    }

    fn or_default<T: Default>(&mut self, field: impl Display, written: Read<T>) -> T {
        written.at(field).unwrap_or_else(|errors| {
            self.errors.0.extend(errors.0);
            T::default()
        })
    }

    fn span(&mut self, field: &str, span: &Option<Span>) -> Option<prost_types::Duration> {
        let nanoseconds = match (span.as_ref()?, self.mode) {
            (Span::Nanoseconds(nanoseconds), _) => Ok(*nanoseconds),
            (Span::Text(text), Mode::Given(parse)) => parse(text).map_err(wrong),
            (Span::Text(text), Mode::Stored) => super::parse_nothing(text).map_err(wrong),
        };
        self.or_default(
            field,
            nanoseconds.map(|value| Some(nanoseconds_to_wire(value))),
        )
    }

    fn part<S, T: Default>(
        &mut self,
        field: &str,
        part: &Option<S>,
        write: impl Fn(&S, Mode<'a>) -> Read<T>,
    ) -> Option<T> {
        let mode = self.mode;
        part.as_ref()
            .map(|part| self.or_default(field, write(part, mode)))
    }

    fn list<S, T: Default>(
        &mut self,
        field: &str,
        items: &Option<Vec<S>>,
        write: impl Fn(&S, Mode<'a>) -> Read<T>,
    ) -> Vec<T> {
        let mode = self.mode;
        let items = items.as_deref().unwrap_or_default().iter().enumerate();
        items
            .map(|(position, item)| {
                self.or_default(format_args!("{field}[{position}]"), write(item, mode))
            })
            .collect()
    }

    fn finish<T>(self, value: T) -> Read<T> {
        self.errors.into_result(value)
    }
}

fn plain<S, T>(items: &Option<Vec<S>>, write: impl Fn(&S) -> T) -> Vec<T> {
    items
        .as_deref()
        .unwrap_or_default()
        .iter()
        .map(write)
        .collect()
}

fn map(entries: &Option<BTreeMap<String, String>>) -> HashMap<String, String> {
    entries
        .iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

pub(super) fn job(job: &spec::Job, mode: Mode<'_>) -> Read<v1::Job> {
    let mut writer = Writer::new(mode);
    let wire = v1::Job {
        namespace: job.namespace.clone(),
        id: job.id.clone(),
        name: job.name.clone(),
        region: job.region.clone(),
        r#type: job.job_type.clone(),
        priority: job.priority,
        all_at_once: job.all_at_once,
        datacenters: job.datacenters.clone().unwrap_or_default(),
        node_pool: job.node_pool.clone(),
        constraints: plain(&job.constraints, constraint),
        affinities: plain(&job.affinities, affinity),
        spreads: plain(&job.spreads, spread),
        task_groups: writer.list("task_groups", &job.task_groups, task_group),
        update: writer.part("update", &job.update, update),
        reschedule: writer.part("reschedule", &job.reschedule, reschedule),
        migrate: writer.part("migrate", &job.migrate, migrate),
        meta: map(&job.meta),
        periodic: job.periodic.as_ref().map(launches::write_periodic),
        parameterized: job
            .parameterized
            .as_ref()
            .map(launches::write_parameterized),
        parent_id: job.parent_id.clone(),
        dispatched: job.dispatched,
        payload: writer.part("payload", &job.payload, |text, _| {
            launches::write_payload(text)
        }),
        dispatch_idempotency_token: job.dispatch_idempotency_token.clone(),
        stop: job.stop,
        version: job.version,
        submit_time_ns: job.submit_time,
        status: None,
        create_index: None,
        modify_index: None,
        job_modify_index: None,
        stable: None,
        version_tag: None,
    };
    writer.finish(wire)
}

fn task_group(group: &spec::TaskGroup, mode: Mode<'_>) -> Read<v1::TaskGroup> {
    let mut writer = Writer::new(mode);
    let wire = v1::TaskGroup {
        name: group.name.clone(),
        count: group.count,
        tasks: writer.list("tasks", &group.tasks, task),
        constraints: plain(&group.constraints, constraint),
        affinities: plain(&group.affinities, affinity),
        spreads: plain(&group.spreads, spread),
        networks: plain(&group.networks, network),
        restart: writer.part("restart", &group.restart, restart),
        reschedule: writer.part("reschedule", &group.reschedule, reschedule),
        update: writer.part("update", &group.update, update),
        migrate: writer.part("migrate", &group.migrate, migrate),
        disconnect: writer.part("disconnect", &group.disconnect, disconnect),
        ephemeral_disk: group.ephemeral_disk.as_ref().map(|disk| v1::EphemeralDisk {
            size_mb: disk.size,
            sticky: disk.sticky,
            migrate: disk.migrate,
        }),
        volumes: volumes(&group.volumes),
        meta: map(&group.meta),
        shutdown_delay: writer.span("shutdown_delay", &group.shutdown_delay),
        max_run_duration: writer.span("max_run_duration", &group.max_run_duration),
        scaling: writer.part("scaling", &group.scaling, |scaling, mode| {
            launches::write_scaling(scaling, large(mode))
        }),
    };
    writer.finish(wire)
}

/// Integers that a driver or an autoscaler is told may be larger than the wire's numbers.
fn large(mode: Mode<'_>) -> LargeInteger {
    match mode {
        Mode::Given(_) => LargeInteger::Refuse,
        Mode::Stored => LargeInteger::AsString,
    }
}

fn task(task: &spec::Task, mode: Mode<'_>) -> Read<v1::Task> {
    let large = large(mode);
    let mut writer = Writer::new(mode);
    let wire = v1::Task {
        name: task.name.clone(),
        driver: task.driver.clone(),
        user: task.user.clone(),
        config: writer.part("config", &task.config, |config, _| {
            json::write_object(config, large)
        }),
        env: map(&task.env),
        meta: map(&task.meta),
        constraints: plain(&task.constraints, constraint),
        affinities: plain(&task.affinities, affinity),
        resources: task.resources.as_ref().map(|resources| v1::Resources {
            cpu: resources.cpu,
            memory_mb: resources.memory,
            memory_max_mb: resources.memory_max,
            cores: resources.cores,
            devices: plain(&resources.devices, device),
        }),
        restart: writer.part("restart", &task.restart, restart),
        kill_timeout: writer.span("kill_timeout", &task.kill_timeout),
        kill_signal: task.kill_signal.clone(),
        leader: task.leader,
        shutdown_delay: writer.span("shutdown_delay", &task.shutdown_delay),
        lifecycle: task.lifecycle.as_ref().map(|lifecycle| v1::Lifecycle {
            hook: lifecycle.hook.clone(),
            sidecar: lifecycle.sidecar,
        }),
        logs: task.logs.as_ref().map(|logs| v1::LogConfig {
            max_files: logs.max_files,
            max_file_size_mb: logs.max_file_size,
            disabled: logs.disabled,
        }),
        volume_mounts: plain(&task.volume_mounts, |mount| v1::VolumeMount {
            volume: mount.volume.clone(),
            destination: mount.destination.clone(),
            read_only: mount.read_only,
            propagation_mode: mount.propagation_mode.clone(),
        }),
        dispatch_payload: task
            .dispatch_payload
            .as_ref()
            .map(|payload| v1::DispatchPayload {
                file: payload.file.clone(),
            }),
    };
    writer.finish(wire)
}

fn volumes(
    volumes: &Option<BTreeMap<String, spec::VolumeRequest>>,
) -> HashMap<String, v1::VolumeRequest> {
    let volumes = volumes.iter().flatten();
    let named = volumes.map(|(name, volume)| {
        let volume = v1::VolumeRequest {
            name: volume.name.clone(),
            r#type: volume.volume_type.clone(),
            source: volume.source.clone(),
            read_only: volume.read_only,
            sticky: volume.sticky,
            per_alloc: volume.per_alloc,
            access_mode: volume.access_mode.clone(),
            attachment_mode: volume.attachment_mode.clone(),
        };
        (name.clone(), volume)
    });
    named.collect()
}

fn device(device: &spec::Device) -> v1::DeviceRequest {
    v1::DeviceRequest {
        name: device.name.clone(),
        count: device.count,
        constraints: plain(&device.constraints, constraint),
        affinities: plain(&device.affinities, affinity),
    }
}

fn network(network: &spec::Network) -> v1::Network {
    v1::Network {
        mode: network.mode.clone(),
        reserved_ports: plain(&network.reserved_ports, port),
        dynamic_ports: plain(&network.dynamic_ports, port),
    }
}

fn port(port: &spec::Port) -> v1::Port {
    v1::Port {
        label: port.label.clone(),
        value: port.value,
        to: port.to,
        host_network: port.host_network.clone(),
        ignore_collision: port.ignore_collision,
    }
}

fn restart(policy: &spec::RestartPolicy, mode: Mode<'_>) -> Read<v1::RestartPolicy> {
    let mut writer = Writer::new(mode);
    let wire = v1::RestartPolicy {
        attempts: policy.attempts,
        interval: writer.span("interval", &policy.interval),
        delay: writer.span("delay", &policy.delay),
        mode: policy.mode.clone(),
    };
    writer.finish(wire)
}

fn reschedule(policy: &spec::ReschedulePolicy, mode: Mode<'_>) -> Read<v1::ReschedulePolicy> {
    let mut writer = Writer::new(mode);
    let wire = v1::ReschedulePolicy {
        attempts: policy.attempts,
        interval: writer.span("interval", &policy.interval),
        delay: writer.span("delay", &policy.delay),
        delay_function: policy.delay_function.clone(),
        max_delay: writer.span("max_delay", &policy.max_delay),
        unlimited: policy.unlimited,
    };
    writer.finish(wire)
}

fn update(strategy: &spec::UpdateStrategy, mode: Mode<'_>) -> Read<v1::UpdateStrategy> {
    let mut writer = Writer::new(mode);
    let wire = v1::UpdateStrategy {
        max_parallel: strategy.max_parallel,
        health_check: strategy.health_check.clone(),
        min_healthy_time: writer.span("min_healthy_time", &strategy.min_healthy_time),
        healthy_deadline: writer.span("healthy_deadline", &strategy.healthy_deadline),
        progress_deadline: writer.span("progress_deadline", &strategy.progress_deadline),
        auto_revert: strategy.auto_revert,
        auto_promote: strategy.auto_promote,
        canary: strategy.canary,
        stagger: writer.span("stagger", &strategy.stagger),
    };
    writer.finish(wire)
}

fn migrate(strategy: &spec::MigrateStrategy, mode: Mode<'_>) -> Read<v1::MigrateStrategy> {
    let mut writer = Writer::new(mode);
    let wire = v1::MigrateStrategy {
        max_parallel: strategy.max_parallel,
        health_check: strategy.health_check.clone(),
        min_healthy_time: writer.span("min_healthy_time", &strategy.min_healthy_time),
        healthy_deadline: writer.span("healthy_deadline", &strategy.healthy_deadline),
    };
    writer.finish(wire)
}

fn disconnect(strategy: &spec::DisconnectStrategy, mode: Mode<'_>) -> Read<v1::DisconnectStrategy> {
    let mut writer = Writer::new(mode);
    let wire = v1::DisconnectStrategy {
        lost_after: writer.span("lost_after", &strategy.lost_after),
        stop_on_client_after: writer.span("stop_on_client_after", &strategy.stop_on_client_after),
        replace: strategy.replace,
        reconcile: strategy.reconcile.clone(),
    };
    writer.finish(wire)
}

fn constraint(constraint: &spec::Constraint) -> v1::Constraint {
    v1::Constraint {
        left: constraint.left.clone(),
        operator: constraint.operator.clone(),
        right: constraint.right.clone(),
    }
}

fn affinity(affinity: &spec::Affinity) -> v1::Affinity {
    v1::Affinity {
        left: affinity.left.clone(),
        operator: affinity.operator.clone(),
        right: affinity.right.clone(),
        weight: affinity.weight,
    }
}

fn spread(spread: &spec::Spread) -> v1::Spread {
    v1::Spread {
        attribute: spread.attribute.clone(),
        weight: spread.weight,
        targets: plain(&spread.targets, |target| v1::SpreadTarget {
            value: target.value.clone(),
            percent: target.percent,
        }),
    }
}
