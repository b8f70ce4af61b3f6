//! Random nouns. Those of a spec say what the wire can say: no empty list or map, no text spans.

use std::sync::Arc;
use std::time::Duration;

use model::allocation::RescheduleEvent;
use model::node::{DeviceInstance, DriverInfo, HostNetwork, HostVolume, NodeDevice};
use model::plan::{DeploymentUpdate, Stop};
use model::resources::ComparableResources;
use model::spec::{self, Span};
use model::{
    AllocClient, AllocMetric, AllocatedCores, AllocatedDevice, AllocatedPort, AllocatedResources,
    Allocation, ClientStatus, Deployment, DeploymentGroup, DeploymentHealth, DeploymentStatus,
    DesiredStatus, DesiredTransition, DrainStatus, DrainStrategy, EvalStatus, Evaluation,
    ExhaustedResources, JobKey, JobType, LastDrain, Node, NodeEligibility, NodeEvent, NodeId,
    NodeScore, NodeStatus, Payload, Plan, PlanResult, ScoreParts, TaskEvent, TaskPhase, TaskState,
    TriggeredBy,
};
use serde_json::{Map, Value};

use super::draw::Draw;
use crate::alloc_client::CLIENT_STATUSES;

fn job_key(draw: &mut Draw) -> JobKey {
    JobKey::new(draw.text(), draw.text())
}

fn amounts(draw: &mut Draw) -> ComparableResources {
    ComparableResources {
        cpu_mhz: draw.bits(),
        memory_mib: draw.bits(),
        disk_mib: draw.bits(),
    }
}

pub(super) fn metric(draw: &mut Draw) -> AllocMetric {
    AllocMetric {
        nodes_evaluated: draw.u32(),
        nodes_filtered: draw.u32(),
        nodes_exhausted: draw.u32(),
        nodes_in_pool: draw.u32(),
        node_pool: draw.text().into(),
        constraint_filtered: draw.map(Draw::u32),
        dimension_exhausted: draw.map(Draw::u32),
        class_filtered: draw.map(Draw::u32),
        class_exhausted: draw.map(Draw::u32),
        resources_exhausted: draw.map(|draw| ExhaustedResources {
            cpu_mhz: draw.bits(),
            memory_mib: draw.bits(),
        }),
        nodes_available: draw.map(Draw::u32),
        score_per_mille: signed(draw),
        score_parts: draw.maybe(score_parts),
        runners_up: draw.list(|draw| NodeScore {
            node_id: draw.id(),
            per_mille: signed(draw),
            parts: score_parts(draw),
        }),
        coalesced_failures: draw.u32(),
    }
}

fn score_parts(draw: &mut Draw) -> ScoreParts {
    ScoreParts {
        fit: signed(draw),
        anti_affinity: draw.maybe(signed),
        reschedule_penalty: draw.maybe(signed),
        affinity: draw.maybe(signed),
        spread: draw.maybe(signed),
        devices: draw.maybe(signed),
        preemption: draw.maybe(signed),
    }
}

fn signed(draw: &mut Draw) -> i32 {
    draw.u32().cast_signed()
}

pub(super) fn allocation(draw: &mut Draw) -> Allocation {
    Allocation {
        id: draw.id(),
        eval_id: draw.id(),
        node_id: draw.id(),
        namespace: Arc::from(draw.text()),
        job_id: Arc::from(draw.text()),
        job_version: draw.bits(),
        job_create_index: draw.bits(),
        task_group: Arc::from(draw.text()),
        name_index: draw.u32(),
        resources: AllocatedResources {
            total: amounts(draw),
            ports: draw.list(|draw| AllocatedPort {
                label: draw.text(),
                value: draw.u16(),
                to: draw.u16(),
                host_ip: draw.text(),
                ignore_collision: draw.flag(),
            }),
            cores: draw.list(|draw| AllocatedCores {
                task: draw.text(),
                ids: draw.list(Draw::u16),
            }),
            devices: draw.list(|draw| AllocatedDevice {
                task: draw.text(),
                vendor: draw.text(),
                device_type: draw.text(),
                name: draw.text(),
                instance_ids: draw.list(Draw::text),
            }),
            memory_oversubscribed: draw.flag(),
        },
        desired_status: draw.one_of(&[
            DesiredStatus::Run,
            DesiredStatus::Stop,
            DesiredStatus::Evict,
        ]),
        desired_description: draw.text(),
        transition: DesiredTransition {
            migrate: draw.flag(),
            migrate_disable_placement: draw.flag(),
            reschedule: draw.flag(),
            force_reschedule: draw.flag(),
        },
        deployment_id: draw.maybe(Draw::id),
        canary: draw.flag(),
        client_status_override: draw.maybe(|draw| draw.one_of(&CLIENT_STATUSES)),
        unknown_since: draw.time(),
        previous_alloc: draw.maybe(Draw::id),
        next_alloc: draw.maybe(Draw::id),
        followup_eval_id: draw.maybe(Draw::id),
        preempted_by: draw.maybe(Draw::id),
        preempted_allocs: draw.list(Draw::id),
        reschedules: draw.list(|draw| RescheduleEvent {
            time: draw.time(),
            previous_alloc: draw.id(),
            previous_node: draw.id(),
            delay: draw.span(),
        }),
        create_time: draw.time(),
        modify_time: draw.time(),
        metric: draw.maybe(|draw| Box::new(metric(draw))),
    }
}

pub(super) fn task_state(draw: &mut Draw) -> TaskState {
    TaskState {
        phase: draw.one_of(&[TaskPhase::Pending, TaskPhase::Running, TaskPhase::Dead]),
        failed: draw.flag(),
        restarts: draw.u32(),
        last_restart: draw.time(),
        started_at: draw.time(),
        finished_at: draw.time(),
        events: draw.list(|draw| TaskEvent {
            event_type: draw.text(),
            time: draw.time(),
            message: draw.text(),
            details: draw.map(Draw::text),
        }),
    }
}

pub(super) fn alloc_client(draw: &mut Draw) -> AllocClient {
    AllocClient {
        status: draw.one_of(&CLIENT_STATUSES),
        description: draw.text(),
        task_states: draw.map(task_state),
        health: draw.maybe(|draw| DeploymentHealth {
            healthy: draw.flag(),
            time: draw.time(),
            deployment_id: draw.maybe(Draw::id),
        }),
        report: draw.below(9),
        modify_time: draw.time(),
    }
}

pub(super) fn evaluation(draw: &mut Draw) -> Evaluation {
    Evaluation {
        id: draw.id(),
        job: job_key(draw),
        job_type: draw.one_of(&JobType::ALL),
        priority: draw.u8(),
        triggered_by: draw.one_of(&TriggeredBy::ALL),
        status: draw.one_of(&EvalStatus::ALL),
        status_description: draw.text(),
        node_id: draw.maybe(Draw::id),
        deployment_id: draw.maybe(Draw::id),
        wait_until: draw.time(),
        next_eval: draw.maybe(Draw::id),
        previous_eval: draw.maybe(Draw::id),
        blocked_eval: draw.maybe(Draw::id),
        failed_task_groups: draw.map(metric),
        queued_allocs: draw.map(Draw::u32),
        class_eligibility: draw.map(Draw::flag),
        escaped_computed_class: draw.flag(),
        snapshot_index: draw.bits(),
        create_time: draw.time(),
        modify_time: draw.time(),
        trace_parent: draw.text(),
    }
}

pub(super) fn deployment(draw: &mut Draw) -> Deployment {
    Deployment {
        id: draw.id(),
        job: job_key(draw),
        job_version: draw.bits(),
        job_modify_index: draw.bits(),
        job_create_index: draw.bits(),
        status: draw.one_of(&DeploymentStatus::ALL),
        status_description: draw.text(),
        groups: draw.map(|draw| DeploymentGroup {
            auto_revert: draw.flag(),
            auto_promote: draw.flag(),
            progress_deadline: draw.span(),
            promoted: draw.flag(),
            desired_canaries: draw.u32(),
            desired_total: draw.u32(),
            placed_canaries: draw.list(Draw::id),
            final_counts: None,
        }),
        eval_priority: draw.u8(),
        create_time: draw.time(),
        modify_time: draw.time(),
    }
}

pub(super) fn node(draw: &mut Draw) -> Node {
    Node {
        id: draw.id(),
        secret: String::new(),
        name: draw.text(),
        datacenter: draw.text(),
        node_pool: draw.text(),
        node_class: draw.text(),
        address: draw.text(),
        attributes: draw.map(Draw::text),
        meta: draw.map(Draw::text),
        drivers: draw.map(|draw| DriverInfo {
            detected: draw.flag(),
            healthy: draw.flag(),
            description: draw.text(),
        }),
        resources: amounts(draw),
        reserved: amounts(draw),
        reserved_ports: draw.list(Draw::u16),
        min_dynamic_port: draw.u16(),
        max_dynamic_port: draw.u16(),
        host_ip: draw.text(),
        host_networks: draw.map(|draw| HostNetwork {
            addresses: draw.list(Draw::text),
            reserved_ports: draw.list(Draw::u16),
        }),
        cores: draw
            .list(|draw| (draw.u16(), draw.u32()))
            .into_iter()
            .collect(),
        max_allocs: draw.u32(),
        devices: draw.list(|draw| NodeDevice {
            vendor: draw.text(),
            device_type: draw.text(),
            name: draw.text(),
            attributes: draw.map(Draw::text),
            env: draw.text(),
            instances: draw.list(|draw| DeviceInstance {
                id: draw.text(),
                healthy: draw.flag(),
            }),
        }),
        host_volumes: draw.map(|draw| HostVolume {
            path: draw.text(),
            read_only: draw.flag(),
        }),
        computed_class: draw.text(),
        status: draw.one_of(&[
            NodeStatus::Initializing,
            NodeStatus::Ready,
            NodeStatus::Disconnected,
            NodeStatus::Down,
        ]),
        status_description: draw.text(),
        eligibility: draw.one_of(&[NodeEligibility::Eligible, NodeEligibility::Ineligible]),
        status_updated_at: draw.time(),
        drain: draw.maybe(|draw| DrainStrategy {
            deadline: draw.maybe(|draw| Duration::from_nanos(draw.below(1_000))),
            ignore_system_jobs: draw.flag(),
            force_deadline: draw.time(),
            started_at: draw.time(),
        }),
        last_drain: draw.maybe(|draw| LastDrain {
            started_at: draw.time(),
            updated_at: draw.time(),
            status: draw.one_of(&DrainStatus::ALL),
            meta: draw.map(Draw::text),
        }),
        events: draw.list(|draw| NodeEvent {
            time: draw.time(),
            subsystem: draw.text(),
            message: draw.text(),
            details: draw.map(Draw::text),
        }),
    }
}

fn stop(draw: &mut Draw) -> Stop {
    Stop {
        alloc_id: draw.id(),
        description: draw.text(),
        client_status: draw.maybe(|draw| draw.one_of(&[ClientStatus::Lost, ClientStatus::Unknown])),
        followup_eval_id: draw.maybe(Draw::id),
        preempted_by: draw.maybe(Draw::id),
    }
}

/// Draws parts sorted by node; no node has none.
fn by_node<T>(
    draw: &mut Draw,
    mut part: impl FnMut(&mut Draw, NodeId) -> T,
) -> std::collections::BTreeMap<NodeId, Vec<T>> {
    let mut nodes = std::collections::BTreeMap::new();
    for _ in 0..draw.below(4) {
        let node_id = draw.id();
        let parts = draw.list(|draw| part(draw, node_id));
        if !parts.is_empty() {
            nodes.insert(node_id, parts);
        }
    }
    nodes
}

pub(super) fn plan(draw: &mut Draw) -> Plan {
    Plan {
        eval_id: draw.id(),
        eval_token: draw.text(),
        eval_modify_index: draw.bits(),
        job: job_key(draw),
        priority: draw.u8(),
        all_at_once: draw.flag(),
        snapshot_index: draw.bits(),
        job_modify_index: draw.bits(),
        stops: by_node(draw, |draw, _| stop(draw)),
        placements: by_node(draw, |draw, node_id| Allocation {
            node_id,
            ..allocation(draw)
        }),
        preemptions: by_node(draw, |draw, _| stop(draw)),
        deployment: draw.maybe(deployment),
        deployment_updates: draw.list(|draw| DeploymentUpdate {
            deployment_id: draw.id(),
            status: draw.one_of(&DeploymentStatus::ALL),
            description: draw.text(),
        }),
        followup_evals: draw.list(evaluation),
        eval_outcome: draw.maybe(|draw| Box::new(evaluation(draw))),
        trace_parent: draw.text(),
    }
}

pub(super) fn plan_result(draw: &mut Draw) -> PlanResult {
    PlanResult {
        placed: draw.list(Draw::id),
        rejected_nodes: draw
            .list(|draw| (draw.id(), draw.text()))
            .into_iter()
            .collect(),
        refused: draw.maybe(|draw| format!("refused {}", draw.text())),
        commit_index: draw.bits(),
        refresh_index: draw.bits(),
    }
}

fn span(draw: &mut Draw) -> Span {
    Span::Nanoseconds(draw.i64())
}

/// Draws a value such as a driver's config holds: integers within 2^53, fractions.
fn json(draw: &mut Draw, depth: u64) -> Value {
    match draw.below(if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => Value::Bool(draw.flag()),
        2 => Value::String(draw.text()),
        3 => Value::from(draw.i64() >> 10),
        4 => Value::from(f64::from(draw.u32()) + 0.5),
        5 => Value::Array(draw.list(|draw| json(draw, depth - 1))),
        _ => Value::Object(config(draw, depth - 1)),
    }
}

fn config(draw: &mut Draw, depth: u64) -> Map<String, Value> {
    draw.map(|draw| json(draw, depth)).into_iter().collect()
}

fn constraint(draw: &mut Draw) -> spec::Constraint {
    spec::Constraint {
        left: draw.maybe(Draw::text),
        operator: draw.maybe(Draw::text),
        right: draw.maybe(Draw::text),
    }
}

fn affinity(draw: &mut Draw) -> spec::Affinity {
    spec::Affinity {
        left: draw.maybe(Draw::text),
        operator: draw.maybe(Draw::text),
        right: draw.maybe(Draw::text),
        weight: draw.maybe(Draw::i64),
    }
}

fn spread(draw: &mut Draw) -> spec::Spread {
    spec::Spread {
        attribute: draw.maybe(Draw::text),
        weight: draw.maybe(Draw::i64),
        targets: draw.maybe_list(|draw| spec::SpreadTarget {
            value: draw.maybe(Draw::text),
            percent: draw.maybe(Draw::i64),
        }),
    }
}

fn restart(draw: &mut Draw) -> spec::RestartPolicy {
    spec::RestartPolicy {
        attempts: draw.maybe(Draw::i64),
        interval: draw.maybe(span),
        delay: draw.maybe(span),
        mode: draw.maybe(Draw::text),
    }
}

fn reschedule(draw: &mut Draw) -> spec::ReschedulePolicy {
    spec::ReschedulePolicy {
        attempts: draw.maybe(Draw::i64),
        interval: draw.maybe(span),
        delay: draw.maybe(span),
        delay_function: draw.maybe(Draw::text),
        max_delay: draw.maybe(span),
        unlimited: draw.maybe(Draw::flag),
    }
}

fn update(draw: &mut Draw) -> spec::UpdateStrategy {
    spec::UpdateStrategy {
        max_parallel: draw.maybe(Draw::i64),
        health_check: draw.maybe(Draw::text),
        min_healthy_time: draw.maybe(span),
        healthy_deadline: draw.maybe(span),
        progress_deadline: draw.maybe(span),
        auto_revert: draw.maybe(Draw::flag),
        auto_promote: draw.maybe(Draw::flag),
        canary: draw.maybe(Draw::i64),
        stagger: draw.maybe(span),
    }
}

fn migrate(draw: &mut Draw) -> spec::MigrateStrategy {
    spec::MigrateStrategy {
        max_parallel: draw.maybe(Draw::i64),
        health_check: draw.maybe(Draw::text),
        min_healthy_time: draw.maybe(span),
        healthy_deadline: draw.maybe(span),
    }
}

fn disconnect(draw: &mut Draw) -> spec::DisconnectStrategy {
    spec::DisconnectStrategy {
        lost_after: draw.maybe(span),
        stop_on_client_after: draw.maybe(span),
        replace: draw.maybe(Draw::flag),
        reconcile: draw.maybe(Draw::text),
    }
}

fn port(draw: &mut Draw) -> spec::Port {
    spec::Port {
        label: draw.maybe(Draw::text),
        value: draw.maybe(Draw::i64),
        to: draw.maybe(Draw::i64),
        host_network: draw.maybe(Draw::text),
        ignore_collision: draw.maybe(Draw::flag),
    }
}

fn task(draw: &mut Draw) -> spec::Task {
    spec::Task {
        name: draw.maybe(Draw::text),
        driver: draw.maybe(Draw::text),
        user: draw.maybe(Draw::text),
        config: draw.maybe(|draw| config(draw, 3)),
        env: draw.maybe_map(),
        meta: draw.maybe_map(),
        constraints: draw.maybe_list(constraint),
        affinities: draw.maybe_list(affinity),
        resources: draw.maybe(|draw| spec::Resources {
            cpu: draw.maybe(Draw::i64),
            memory: draw.maybe(Draw::i64),
            memory_max: draw.maybe(Draw::i64),
            cores: draw.maybe(Draw::i64),
            devices: draw.maybe_list(|draw| spec::Device {
                name: draw.maybe(Draw::text),
                count: draw.maybe(Draw::i64),
                constraints: draw.maybe_list(constraint),
                affinities: draw.maybe_list(affinity),
            }),
        }),
        restart: draw.maybe(restart),
        kill_timeout: draw.maybe(span),
        kill_signal: draw.maybe(Draw::text),
        leader: draw.maybe(Draw::flag),
        shutdown_delay: draw.maybe(span),
        lifecycle: draw.maybe(|draw| spec::Lifecycle {
            hook: draw.maybe(Draw::text),
            sidecar: draw.maybe(Draw::flag),
        }),
        logs: draw.maybe(|draw| spec::LogConfig {
            max_files: draw.maybe(Draw::i64),
            max_file_size: draw.maybe(Draw::i64),
            disabled: draw.maybe(Draw::flag),
        }),
        volume_mounts: draw.maybe_list(|draw| spec::VolumeMount {
            volume: draw.maybe(Draw::text),
            destination: draw.maybe(Draw::text),
            read_only: draw.maybe(Draw::flag),
            propagation_mode: draw.maybe(Draw::text),
        }),
        dispatch_payload: draw.maybe(|draw| spec::DispatchPayload {
            file: draw.maybe(Draw::text),
        }),
    }
}

fn volume(draw: &mut Draw) -> spec::VolumeRequest {
    spec::VolumeRequest {
        name: draw.maybe(Draw::text),
        volume_type: draw.maybe(Draw::text),
        source: draw.maybe(Draw::text),
        read_only: draw.maybe(Draw::flag),
        sticky: draw.maybe(Draw::flag),
        per_alloc: draw.maybe(Draw::flag),
        access_mode: draw.maybe(Draw::text),
        attachment_mode: draw.maybe(Draw::text),
    }
}

fn task_group(draw: &mut Draw) -> spec::TaskGroup {
    spec::TaskGroup {
        name: draw.maybe(Draw::text),
        count: draw.maybe(Draw::i64),
        tasks: draw.maybe_list(task),
        constraints: draw.maybe_list(constraint),
        affinities: draw.maybe_list(affinity),
        spreads: draw.maybe_list(spread),
        networks: draw.maybe_list(|draw| spec::Network {
            mode: draw.maybe(Draw::text),
            reserved_ports: draw.maybe_list(port),
            dynamic_ports: draw.maybe_list(port),
        }),
        restart: draw.maybe(restart),
        reschedule: draw.maybe(reschedule),
        update: draw.maybe(update),
        migrate: draw.maybe(migrate),
        disconnect: draw.maybe(disconnect),
        ephemeral_disk: draw.maybe(|draw| spec::EphemeralDisk {
            size: draw.maybe(Draw::i64),
            sticky: draw.maybe(Draw::flag),
            migrate: draw.maybe(Draw::flag),
        }),
        volumes: draw.maybe(|draw| {
            let mut volumes = draw.map(volume);
            volumes.insert("data".to_owned(), volume(draw));
            volumes
        }),
        meta: draw.maybe_map(),
        shutdown_delay: draw.maybe(span),
        max_run_duration: draw.maybe(span),
        scaling: draw.maybe(|draw| spec::Scaling {
            enabled: draw.maybe(Draw::flag),
            min: draw.maybe(Draw::i64),
            max: draw.maybe(Draw::i64),
            scaling_type: draw.maybe(Draw::text),
            policy: draw.maybe(|draw| config(draw, 2)),
        }),
    }
}

pub(super) fn job(draw: &mut Draw) -> spec::Job {
    spec::Job {
        namespace: draw.maybe(Draw::text),
        id: draw.maybe(Draw::text),
        name: draw.maybe(Draw::text),
        region: draw.maybe(Draw::text),
        job_type: draw.maybe(Draw::text),
        priority: draw.maybe(Draw::i64),
        all_at_once: draw.maybe(Draw::flag),
        datacenters: draw.maybe_list(Draw::text),
        node_pool: draw.maybe(Draw::text),
        constraints: draw.maybe_list(constraint),
        affinities: draw.maybe_list(affinity),
        spreads: draw.maybe_list(spread),
        task_groups: draw.maybe_list(task_group),
        update: draw.maybe(update),
        reschedule: draw.maybe(reschedule),
        migrate: draw.maybe(migrate),
        meta: draw.maybe_map(),
        periodic: draw.maybe(|draw| spec::Periodic {
            enabled: draw.maybe(Draw::flag),
            spec: draw.maybe(Draw::text),
            specs: draw.maybe_list(Draw::text),
            // There is only one, and it does not travel.
            spec_type: None,
            prohibit_overlap: draw.maybe(Draw::flag),
            time_zone: draw.maybe(Draw::text),
        }),
        parameterized: draw.maybe(|draw| spec::Parameterized {
            payload: draw.maybe(Draw::text),
            meta_required: draw.maybe_list(Draw::text),
            meta_optional: draw.maybe_list(Draw::text),
        }),
        parent_id: draw.maybe(Draw::text),
        dispatched: draw.maybe(Draw::flag),
        payload: draw.maybe(|draw| Payload(draw.list(Draw::u8)).to_base64()),
        dispatch_idempotency_token: draw.maybe(Draw::text),
        stop: draw.maybe(Draw::flag),
        version: draw.maybe(Draw::bits),
        submit_time: draw.maybe(Draw::bits),
    }
}
