//! Random nouns.

use std::sync::Arc;
use std::time::Duration;

use model::allocation::RescheduleEvent;
use model::csi::{CsiControllerInfo, CsiNodeInfo, CsiPluginInfo};
use model::node::{DeviceInstance, DriverInfo, HostNetwork, HostVolume, NodeDevice};
use model::plan::{DeploymentUpdate, Stop};
use model::resources::ComparableResources;
use model::{
    AllocClient, AllocMetric, AllocatedCores, AllocatedDevice, AllocatedPort, AllocatedResources,
    Allocation, ClientStatus, Deployment, DeploymentGroup, DeploymentHealth, DeploymentStatus,
    DesiredStatus, DesiredTransition, DrainStatus, DrainStrategy, EvalStatus, Evaluation,
    ExhaustedResources, JobKey, JobType, LastDrain, Node, NodeEligibility, NodeEvent, NodeId,
    NodeScore, NodeStatus, Plan, PlanResult, ScoreParts, TaskEvent, TaskPhase, TaskState,
    TriggeredBy,
};

use super::draw::Draw;

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

fn plugin(draw: &mut Draw) -> CsiPluginInfo {
    CsiPluginInfo {
        provider: draw.text(),
        provider_version: draw.text(),
        alloc_id: draw.id(),
        healthy: draw.flag(),
        description: draw.text(),
        needs_controller: draw.flag(),
        controller: draw.maybe(|draw| CsiControllerInfo {
            creates: draw.flag(),
            attaches: draw.flag(),
            attaches_read_only: draw.flag(),
            lists: draw.flag(),
            snapshots: draw.flag(),
            lists_snapshots: draw.flag(),
            clones: draw.flag(),
        }),
        node: draw.maybe(|draw| CsiNodeInfo {
            node_id: draw.text(),
            max_volumes: draw.bits(),
            topology: draw.map(Draw::text),
            stages: draw.flag(),
        }),
    }
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
                task: String::new(),
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
            no_shutdown_delay: draw.flag(),
        },
        deployment_id: draw.maybe(Draw::id),
        canary: draw.flag(),
        client_status_override: draw.maybe(|draw| draw.one_of(&ClientStatus::ALL)),
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
            delay: draw.duration(),
        }),
        create_time: draw.time(),
        modify_time: draw.time(),
        metric: draw.maybe(|draw| metric(draw).into()),
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
        status: draw.one_of(&ClientStatus::ALL),
        description: draw.text(),
        task_states: draw.map(task_state).into_iter().collect(),
        health: draw.maybe(|draw| DeploymentHealth {
            healthy: draw.flag(),
            time: draw.time(),
            deployment_id: draw.maybe(Draw::id),
        }),
        services: draw.list(|draw| model::ServiceRegistration {
            id: draw.text(),
            name: draw.text(),
            tags: draw.list(Draw::text),
            canary_tags: draw.list(Draw::text),
            address: draw.text(),
            port: u16::from(draw.u8()),
            task: draw.text(),
            health: draw.one_of(&model::ServiceHealth::ALL),
        }),
        network: draw.maybe(|draw| {
            Box::new(model::NetworkStatus {
                interface: draw.text(),
                address: draw.text(),
                address_ipv6: draw.text(),
            })
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
            progress_deadline: draw.duration(),
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
        csi_nodes: draw.map(plugin),
        csi_controllers: draw.map(plugin),
        dials_out: draw.flag(),
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
        // Never on the wire.
        lacks_evals: false,
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

/// Draws parts sorted by node; every node has at least one.
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
