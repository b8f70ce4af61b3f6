//! [`v1::Job`] → [`spec::Job`], collecting everything that is wrong.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

use model::spec::{self, Span};
use model::{FieldErrors, Payload};

use super::{launches, span};
use crate::fields::{At as _, Read, nanoseconds};
use crate::{json, v1};

/// Gathers the errors of one message while the rest of it is read.
#[derive(Default)]
struct Errors(FieldErrors);

impl Errors {
    fn or_default<T: Default>(&mut self, field: impl Display, read: Read<T>) -> T {
        read.at(field).unwrap_or_else(|errors| {
            self.0.0.extend(errors.0);
            T::default()
        })
    }

    fn span(&mut self, field: &str, wire: Option<prost_types::Duration>) -> Option<Span> {
        wire.and_then(|wire| {
            self.or_default(field, nanoseconds(wire).map(|nanos| Some(span(nanos))))
        })
    }

    fn part<W, T: Default>(
        &mut self,
        field: &str,
        wire: Option<W>,
        read: impl Fn(W) -> Read<T>,
    ) -> Option<T> {
        wire.map(|wire| self.or_default(field, read(wire)))
    }

    fn list<W, T: Default>(
        &mut self,
        field: &str,
        wire: Vec<W>,
        read: impl Fn(W) -> Read<T>,
    ) -> Option<Vec<T>> {
        let items = wire.into_iter().enumerate();
        none_if_empty(
            items
                .map(|(position, item)| {
                    self.or_default(format_args!("{field}[{position}]"), read(item))
                })
                .collect(),
        )
    }
}

pub(super) fn none_if_empty<T>(items: Vec<T>) -> Option<Vec<T>> {
    if items.is_empty() { None } else { Some(items) }
}

fn plain<W, T>(items: Vec<W>, read: impl Fn(W) -> T) -> Option<Vec<T>> {
    none_if_empty(items.into_iter().map(read).collect())
}

fn map(entries: HashMap<String, String>) -> Option<BTreeMap<String, String>> {
    if entries.is_empty() {
        None
    } else {
        Some(entries.into_iter().collect())
    }
}

pub(super) fn job(wire: v1::Job) -> Read<spec::Job> {
    let mut errors = Errors::default();
    let job = spec::Job {
        namespace: wire.namespace,
        id: wire.id,
        name: wire.name,
        region: wire.region,
        job_type: wire.r#type,
        priority: wire.priority,
        all_at_once: wire.all_at_once,
        datacenters: none_if_empty(wire.datacenters),
        node_pool: wire.node_pool,
        constraints: plain(wire.constraints, constraint),
        affinities: plain(wire.affinities, affinity),
        spreads: plain(wire.spreads, spread),
        task_groups: errors.list("task_groups", wire.task_groups, task_group),
        update: errors.part("update", wire.update, update),
        reschedule: errors.part("reschedule", wire.reschedule, reschedule),
        migrate: errors.part("migrate", wire.migrate, migrate),
        meta: map(wire.meta),
        periodic: wire.periodic.map(launches::read_periodic),
        parameterized: wire.parameterized.map(launches::read_parameterized),
        parent_id: wire.parent_id,
        dispatched: wire.dispatched,
        payload: wire.payload.map(|bytes| Payload(bytes).to_base64()),
        dispatch_idempotency_token: wire.dispatch_idempotency_token,
        stop: wire.stop,
        version: wire.version,
        submit_time: wire.submit_time_ns,
    };
    errors.0.into_result(job)
}

fn task_group(wire: v1::TaskGroup) -> Read<spec::TaskGroup> {
    let mut errors = Errors::default();
    let group = spec::TaskGroup {
        name: wire.name,
        count: wire.count,
        tasks: errors.list("tasks", wire.tasks, task),
        constraints: plain(wire.constraints, constraint),
        affinities: plain(wire.affinities, affinity),
        spreads: plain(wire.spreads, spread),
        networks: plain(wire.networks, network),
        restart: errors.part("restart", wire.restart, restart),
        reschedule: errors.part("reschedule", wire.reschedule, reschedule),
        update: errors.part("update", wire.update, update),
        migrate: errors.part("migrate", wire.migrate, migrate),
        disconnect: errors.part("disconnect", wire.disconnect, disconnect),
        ephemeral_disk: wire.ephemeral_disk.map(|disk| spec::EphemeralDisk {
            size: disk.size_mb,
            sticky: disk.sticky,
            migrate: disk.migrate,
        }),
        volumes: volumes(wire.volumes),
        meta: map(wire.meta),
        shutdown_delay: errors.span("shutdown_delay", wire.shutdown_delay),
        max_run_duration: errors.span("max_run_duration", wire.max_run_duration),
        scaling: errors.part("scaling", wire.scaling, launches::read_scaling),
    };
    errors.0.into_result(group)
}

fn task(wire: v1::Task) -> Read<spec::Task> {
    let mut errors = Errors::default();
    let task = spec::Task {
        name: wire.name,
        driver: wire.driver,
        user: wire.user,
        config: errors.part("config", wire.config, json::read_object),
        env: map(wire.env),
        meta: map(wire.meta),
        constraints: plain(wire.constraints, constraint),
        affinities: plain(wire.affinities, affinity),
        resources: wire.resources.map(|resources| spec::Resources {
            cpu: resources.cpu,
            memory: resources.memory_mb,
            memory_max: resources.memory_max_mb,
            cores: resources.cores,
            devices: plain(resources.devices, device),
        }),
        restart: errors.part("restart", wire.restart, restart),
        kill_timeout: errors.span("kill_timeout", wire.kill_timeout),
        kill_signal: wire.kill_signal,
        leader: wire.leader,
        shutdown_delay: errors.span("shutdown_delay", wire.shutdown_delay),
        lifecycle: wire.lifecycle.map(|lifecycle| spec::Lifecycle {
            hook: lifecycle.hook,
            sidecar: lifecycle.sidecar,
        }),
        logs: wire.logs.map(|logs| spec::LogConfig {
            max_files: logs.max_files,
            max_file_size: logs.max_file_size_mb,
            disabled: logs.disabled,
        }),
        volume_mounts: plain(wire.volume_mounts, |mount| spec::VolumeMount {
            volume: mount.volume,
            destination: mount.destination,
            read_only: mount.read_only,
            propagation_mode: mount.propagation_mode,
        }),
        dispatch_payload: wire
            .dispatch_payload
            .map(|payload| spec::DispatchPayload { file: payload.file }),
    };
    errors.0.into_result(task)
}

fn volumes(
    wire: HashMap<String, v1::VolumeRequest>,
) -> Option<BTreeMap<String, spec::VolumeRequest>> {
    if wire.is_empty() {
        return None;
    }
    let named = wire.into_iter().map(|(name, volume)| {
        let volume = spec::VolumeRequest {
            name: volume.name,
            volume_type: volume.r#type,
            source: volume.source,
            read_only: volume.read_only,
            sticky: volume.sticky,
            per_alloc: volume.per_alloc,
            access_mode: volume.access_mode,
            attachment_mode: volume.attachment_mode,
        };
        (name, volume)
    });
    Some(named.collect())
}

fn device(wire: v1::DeviceRequest) -> spec::Device {
    spec::Device {
        name: wire.name,
        count: wire.count,
        constraints: plain(wire.constraints, constraint),
        affinities: plain(wire.affinities, affinity),
    }
}

fn network(wire: v1::Network) -> spec::Network {
    spec::Network {
        mode: wire.mode,
        reserved_ports: plain(wire.reserved_ports, port),
        dynamic_ports: plain(wire.dynamic_ports, port),
    }
}

fn port(wire: v1::Port) -> spec::Port {
    spec::Port {
        label: wire.label,
        value: wire.value,
        to: wire.to,
        host_network: wire.host_network,
        ignore_collision: wire.ignore_collision,
    }
}

fn restart(wire: v1::RestartPolicy) -> Read<spec::RestartPolicy> {
    let mut errors = Errors::default();
    let policy = spec::RestartPolicy {
        attempts: wire.attempts,
        interval: errors.span("interval", wire.interval),
        delay: errors.span("delay", wire.delay),
        mode: wire.mode,
    };
    errors.0.into_result(policy)
}

fn reschedule(wire: v1::ReschedulePolicy) -> Read<spec::ReschedulePolicy> {
    let mut errors = Errors::default();
    let policy = spec::ReschedulePolicy {
        attempts: wire.attempts,
        interval: errors.span("interval", wire.interval),
        delay: errors.span("delay", wire.delay),
        delay_function: wire.delay_function,
        max_delay: errors.span("max_delay", wire.max_delay),
        unlimited: wire.unlimited,
    };
    errors.0.into_result(policy)
}

fn update(wire: v1::UpdateStrategy) -> Read<spec::UpdateStrategy> {
    let mut errors = Errors::default();
    let strategy = spec::UpdateStrategy {
        max_parallel: wire.max_parallel,
        health_check: wire.health_check,
        min_healthy_time: errors.span("min_healthy_time", wire.min_healthy_time),
        healthy_deadline: errors.span("healthy_deadline", wire.healthy_deadline),
        progress_deadline: errors.span("progress_deadline", wire.progress_deadline),
        auto_revert: wire.auto_revert,
        auto_promote: wire.auto_promote,
        canary: wire.canary,
        stagger: errors.span("stagger", wire.stagger),
    };
    errors.0.into_result(strategy)
}

fn migrate(wire: v1::MigrateStrategy) -> Read<spec::MigrateStrategy> {
    let mut errors = Errors::default();
    let strategy = spec::MigrateStrategy {
        max_parallel: wire.max_parallel,
        health_check: wire.health_check,
        min_healthy_time: errors.span("min_healthy_time", wire.min_healthy_time),
        healthy_deadline: errors.span("healthy_deadline", wire.healthy_deadline),
    };
    errors.0.into_result(strategy)
}

fn disconnect(wire: v1::DisconnectStrategy) -> Read<spec::DisconnectStrategy> {
    let mut errors = Errors::default();
    let strategy = spec::DisconnectStrategy {
        lost_after: errors.span("lost_after", wire.lost_after),
        stop_on_client_after: errors.span("stop_on_client_after", wire.stop_on_client_after),
        replace: wire.replace,
        reconcile: wire.reconcile,
    };
    errors.0.into_result(strategy)
}

fn constraint(wire: v1::Constraint) -> spec::Constraint {
    spec::Constraint {
        left: wire.left,
        operator: wire.operator,
        right: wire.right,
    }
}

fn affinity(wire: v1::Affinity) -> spec::Affinity {
    spec::Affinity {
        left: wire.left,
        operator: wire.operator,
        right: wire.right,
        weight: wire.weight,
    }
}

fn spread(wire: v1::Spread) -> spec::Spread {
    spec::Spread {
        attribute: wire.attribute,
        weight: wire.weight,
        targets: plain(wire.targets, |target: v1::SpreadTarget| {
            spec::SpreadTarget {
                value: target.value,
                percent: target.percent,
            }
        }),
    }
}
