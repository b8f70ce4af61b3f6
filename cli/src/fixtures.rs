//! Objects for tests, in the form of the API.
//!
//! `tests/it` includes this file, so it must not use the crate.

use proto::v1;

/// 2026-11-21T12:00:00Z, the current time in tests, in Unix nanoseconds.
pub(crate) const NOW: u64 = 1_795_262_400 * SECOND;
pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) const EVAL: &str = "1a2b3c4d-0000-4000-8000-000000000001";
pub(crate) const BLOCKED_EVAL: &str = "2b3c4d5e-0000-4000-8000-000000000002";
pub(crate) const ALLOC: &str = "8a3f2c1e-0000-4000-8000-000000000003";
pub(crate) const OLD_ALLOC: &str = "8a3f9999-0000-4000-8000-000000000004";
pub(crate) const NODE: &str = "4d2ba53b-0000-4000-8000-000000000005";
pub(crate) const DEPLOYMENT: &str = "5e6f7a8b-0000-4000-8000-000000000006";

pub(crate) fn stub() -> v1::JobStub {
    v1::JobStub {
        namespace: "default".to_owned(),
        id: "web".to_owned(),
        name: "web".to_owned(),
        r#type: "service".to_owned(),
        priority: 50,
        status: "running".to_owned(),
        submit_time_ns: NOW - 90 * SECOND,
        create_index: 10,
        modify_index: 17,
        version: 1,
        summary: Some(summary()),
        ..v1::JobStub::default()
    }
}

pub(crate) fn summary() -> v1::JobSummary {
    let counts = v1::TaskGroupSummary {
        running: 2,
        complete: 1,
        ..v1::TaskGroupSummary::default()
    };
    v1::JobSummary {
        children: None,
        task_groups: [("app".to_owned(), counts)].into(),
    }
}

pub(crate) fn job() -> v1::Job {
    let text = |text: &str| Some(text.to_owned());
    let task = v1::Task {
        name: text("server"),
        driver: text("raw_exec"),
        resources: Some(v1::Resources {
            cpu_mhz: Some(500),
            memory_mib: Some(256),
            memory_max_mib: Some(0),
            ..v1::Resources::default()
        }),
        ..v1::Task::default()
    };
    let port = v1::Port {
        label: text("http"),
        ..v1::Port::default()
    };
    let group = v1::TaskGroup {
        name: text("app"),
        count: Some(2),
        tasks: vec![task],
        networks: vec![v1::Network {
            mode: text("host"),
            dynamic_ports: vec![port],
            ..v1::Network::default()
        }],
        ..v1::TaskGroup::default()
    };
    v1::Job {
        namespace: text("default"),
        id: text("web"),
        name: text("web"),
        r#type: text("service"),
        priority: Some(50),
        datacenters: vec!["dc1".to_owned(), "dc2".to_owned()],
        node_pool: text("default"),
        task_groups: vec![group],
        stop: Some(false),
        version: Some(1),
        submit_time_ns: Some(NOW - 90 * SECOND),
        status: text("running"),
        create_index: Some(10),
        modify_index: Some(17),
        job_modify_index: Some(17),
        stable: Some(true),
        ..v1::Job::default()
    }
}

pub(crate) fn eval() -> v1::Evaluation {
    v1::Evaluation {
        id: EVAL.to_owned(),
        namespace: "default".to_owned(),
        job_id: "web".to_owned(),
        r#type: "service".to_owned(),
        priority: 50,
        triggered_by: "job-register".to_owned(),
        status: "complete".to_owned(),
        deployment_id: DEPLOYMENT.to_owned(),
        create_time_ns: NOW - 80 * SECOND,
        modify_time_ns: NOW - 79 * SECOND,
        create_index: 18,
        modify_index: 20,
        ..v1::Evaluation::default()
    }
}

/// An evaluation with failed placements for lack of memory and of a kernel.
pub(crate) fn failed_eval() -> v1::Evaluation {
    v1::Evaluation {
        deployment_id: String::new(),
        blocked_eval_id: BLOCKED_EVAL.to_owned(),
        failed_task_groups: [("app".to_owned(), metric())].into(),
        queued_allocations: [("app".to_owned(), 2)].into(),
        ..eval()
    }
}

/// The blocked evaluation.
pub(crate) fn blocked_eval() -> v1::Evaluation {
    v1::Evaluation {
        id: BLOCKED_EVAL.to_owned(),
        triggered_by: "queued-allocs".to_owned(),
        status: "blocked".to_owned(),
        status_description: "created to place remaining allocations".to_owned(),
        previous_eval_id: EVAL.to_owned(),
        blocked_eval_id: String::new(),
        class_eligibility: [("v1:123".to_owned(), false)].into(),
        create_index: 20,
        modify_index: 20,
        ..failed_eval()
    }
}

pub(crate) fn metric() -> v1::AllocMetric {
    let exhausted = v1::ExhaustedResources {
        cpu_mhz: 0,
        memory_mib: 512,
    };
    v1::AllocMetric {
        nodes_evaluated: 3,
        nodes_filtered: 1,
        nodes_exhausted: 2,
        nodes_in_pool: 3,
        node_pool: "default".to_owned(),
        constraint_filtered: [("${attr.kernel.name} = linux".to_owned(), 1)].into(),
        dimension_exhausted: [("memory".to_owned(), 2)].into(),
        class_filtered: [("small".to_owned(), 1)].into(),
        class_exhausted: [("big".to_owned(), 2)].into(),
        resources_exhausted: [("server".to_owned(), exhausted)].into(),
        nodes_available: [("dc1".to_owned(), 3), ("dc2".to_owned(), 0)].into(),
        coalesced_failures: 1,
        ..v1::AllocMetric::default()
    }
}

/// Two task groups: one that cannot be placed, and one on the best node.
pub(crate) fn explanation() -> v1::Explanation {
    v1::Explanation {
        index: 131,
        job_version: Some(1),
        empty_reason: String::new(),
        groups: vec![unplaced_group(), placed_group()],
    }
}

fn unplaced_group() -> v1::GroupExplanation {
    let reason = |verdict: &str, reason: &str, nodes, (least, most, unit): (u64, u64, &str)| {
        v1::ExplainedReason {
            verdict: verdict.to_owned(),
            reason: reason.to_owned(),
            nodes,
            least_missing: least,
            most_missing: most,
            unit: unit.to_owned(),
        }
    };
    let none = (0, 0, "");
    let big = v1::VerdictCounts {
        exhausted: 3,
        ..v1::VerdictCounts::default()
    };
    let others = v1::VerdictCounts {
        out_of_scope: 1,
        unavailable: 1,
        filtered: 2,
        ..v1::VerdictCounts::default()
    };
    v1::GroupExplanation {
        name: "app".to_owned(),
        wanted: 3,
        placed: 1,
        live: 1,
        missing: 2,
        question: "unplaced".to_owned(),
        job_version: 1,
        counts: Some(v1::VerdictCounts {
            exhausted: 3,
            ..others
        }),
        classes: vec![
            v1::ClassExplanation {
                counts: Some(others),
                reasons: vec![
                    reason("out-of-scope", "not in the job's datacenters", 1, none),
                    reason("unavailable", "node is down", 1, none),
                    reason("filtered", "${attr.kernel.name} = linux", 2, none),
                    reason("filtered", "missing drivers: exec", 1, none),
                ],
                reasons_left_out: 1,
                ..v1::ClassExplanation::default()
            },
            v1::ClassExplanation {
                class: "big".to_owned(),
                counts: Some(big),
                holds: 1,
                reasons: vec![
                    reason("exhausted", "cpu", 3, (500, 1_500, "MHz")),
                    reason("exhausted", "memory", 1, (64, 64, "MiB")),
                ],
                ..v1::ClassExplanation::default()
            },
        ],
        nearest: Some(v1::NodeExplanation {
            node_id: NODE.to_owned(),
            node_name: "n1".to_owned(),
            class: "big".to_owned(),
            verdict: "exhausted".to_owned(),
            holds: 1,
            blockers: vec![v1::PlacementBlocker {
                verdict: "exhausted".to_owned(),
                reason: "cpu".to_owned(),
                change: "cpu: ask 500 MHz less or free 500 MHz on node n1".to_owned(),
                missing: 500,
                unit: "MHz".to_owned(),
            }],
            score: None,
            preemption: Some(v1::ExplainedPreemption {
                outcome: "outranked".to_owned(),
                text: "needs priority 55 or more, 10 above its victims; this job has 50".to_owned(),
                victims: Vec::new(),
                needed_priority: 55,
            }),
        }),
        preemption: Some(v1::PreemptionCounts {
            outranked: 2,
            insufficient: 1,
            min_priority: 55,
            ..v1::PreemptionCounts::default()
        }),
        ..v1::GroupExplanation::default()
    }
}

fn placed_group() -> v1::GroupExplanation {
    let score = |node_id: &str, score_per_mille, fit, anti_affinity| v1::NodeScore {
        node_id: node_id.to_owned(),
        score_per_mille,
        parts: Some(v1::ScoreParts {
            fit,
            anti_affinity,
            ..v1::ScoreParts::default()
        }),
    };
    let counts = v1::VerdictCounts {
        outscored: 1,
        chosen: 1,
        ..v1::VerdictCounts::default()
    };
    v1::GroupExplanation {
        name: "cache".to_owned(),
        wanted: 1,
        placed: 1,
        live: 1,
        question: "placed".to_owned(),
        alloc_id: ALLOC.to_owned(),
        job_version: 1,
        counts: Some(counts),
        chosen: Some(v1::ChosenNode {
            node_id: NODE.to_owned(),
            node_name: "n1".to_owned(),
            class: "big".to_owned(),
            score: Some(score(NODE, 589, 589, None)),
            keeps_disk: false,
            victims: vec![v1::ExplainedVictim {
                alloc_id: ALLOC.to_owned(),
                job_id: "batch".to_owned(),
                priority: 20,
            }],
        }),
        classes: vec![v1::ClassExplanation {
            class: "big".to_owned(),
            counts: Some(counts),
            holds: 1,
            best: Some(v1::OutscoredNode {
                node_name: "n2".to_owned(),
                score: Some(score(EVAL, 106, 712, Some(-500))),
                gap_per_mille: Some(483),
            }),
            ..v1::ClassExplanation::default()
        }],
        classes_left_out: 2,
        nodes_left_out: 5,
        node: Some(v1::NodeExplanation {
            node_id: EVAL.to_owned(),
            node_name: "n2".to_owned(),
            class: "big".to_owned(),
            verdict: "outscored".to_owned(),
            score: Some(score(EVAL, 106, 712, Some(-500))),
            ..v1::NodeExplanation::default()
        }),
        ..v1::GroupExplanation::default()
    }
}

pub(crate) fn alloc() -> v1::Allocation {
    let port = v1::AllocatedPort {
        label: "http".to_owned(),
        value: 23_456,
        to: 80,
        host_ip: "10.0.0.7".to_owned(),
        ignore_collision: false,
        task: String::new(),
    };
    v1::Allocation {
        id: ALLOC.to_owned(),
        eval_id: EVAL.to_owned(),
        name: "web.app[0]".to_owned(),
        node_id: NODE.to_owned(),
        node_name: "n1".to_owned(),
        namespace: "default".to_owned(),
        job_id: "web".to_owned(),
        job_type: "service".to_owned(),
        job_version: 1,
        job_create_index: 10,
        task_group: "app".to_owned(),
        resources: Some(v1::AllocatedResources {
            cpu_mhz: 500,
            memory_mib: 256,
            disk_mib: 300,
            ports: vec![port],
            ..v1::AllocatedResources::default()
        }),
        desired_status: "run".to_owned(),
        client_status: "running".to_owned(),
        client_description: "Tasks are running".to_owned(),
        network_status: Some(v1::NetworkStatus {
            interface_name: "eth0".to_owned(),
            address: "172.26.64.2".to_owned(),
            address_ipv6: String::new(),
        }),
        deployment_id: DEPLOYMENT.to_owned(),
        deployment_health: Some(v1::DeploymentHealth {
            healthy: true,
            time_ns: NOW - 60 * SECOND,
            deployment_id: DEPLOYMENT.to_owned(),
        }),
        task_states: [("server".to_owned(), task_state())].into(),
        metric: Some(v1::AllocMetric {
            nodes_evaluated: 2,
            score_per_mille: 731,
            score_parts: Some(v1::ScoreParts {
                fit: 760,
                affinity: Some(1_000),
                spread: Some(433),
                devices: Some(500),
                ..v1::ScoreParts::default()
            }),
            runners_up: vec![v1::NodeScore {
                node_id: EVAL.to_owned(),
                score_per_mille: -87,
                parts: Some(v1::ScoreParts {
                    fit: 913,
                    anti_affinity: Some(-1_000),
                    reschedule_penalty: Some(-1_000),
                    affinity: Some(0),
                    spread: Some(650),
                    ..v1::ScoreParts::default()
                }),
            }],
            ..v1::AllocMetric::default()
        }),
        create_time_ns: NOW - 79 * SECOND,
        modify_time_ns: NOW - 60 * SECOND,
        create_index: 20,
        modify_index: 25,
        alloc_modify_index: 20,
        ..v1::Allocation::default()
    }
}

/// A failed, replaced allocation.
pub(crate) fn old_alloc() -> v1::Allocation {
    v1::Allocation {
        id: OLD_ALLOC.to_owned(),
        desired_status: "stop".to_owned(),
        desired_description: "alloc was rescheduled because it failed".to_owned(),
        client_status: "failed".to_owned(),
        client_description: "Failed tasks".to_owned(),
        next_alloc_id: ALLOC.to_owned(),
        deployment_id: String::new(),
        deployment_health: None,
        job_version: 0,
        create_index: 12,
        create_time_ns: NOW - 3_700 * SECOND,
        ..alloc()
    }
}

/// An allocation with a missing command.
pub(crate) fn never_started() -> v1::Allocation {
    let event = |kind: &str, message: &str| v1::TaskEvent {
        r#type: kind.to_owned(),
        time_ns: NOW - 60 * SECOND,
        display_message: message.to_owned(),
        ..v1::TaskEvent::default()
    };
    let state = v1::TaskState {
        state: "dead".to_owned(),
        failed: true,
        events: vec![
            event("Received", "Task received by client"),
            event("Driver Failure", "no such command"),
            event("Not Restarting", "Exceeded allowed attempts"),
        ],
        ..v1::TaskState::default()
    };
    let health = v1::DeploymentHealth {
        healthy: false,
        time_ns: NOW - 60 * SECOND,
        deployment_id: DEPLOYMENT.to_owned(),
    };
    v1::Allocation {
        client_status: "failed".to_owned(),
        client_description: "Failed tasks".to_owned(),
        deployment_health: Some(health),
        task_states: [("server".to_owned(), state)].into(),
        ..alloc()
    }
}

pub(crate) fn task_state() -> v1::TaskState {
    let event = |kind: &str, seconds: u64, message: &str| v1::TaskEvent {
        r#type: kind.to_owned(),
        time_ns: NOW - seconds * SECOND,
        display_message: message.to_owned(),
        ..v1::TaskEvent::default()
    };
    v1::TaskState {
        state: "running".to_owned(),
        restarts: 1,
        last_restart_at_ns: NOW - 70 * SECOND,
        started_at_ns: NOW - 69 * SECOND,
        events: vec![
            event("Received", 79, "Task received by client"),
            event("Terminated", 71, "Exit Code: 1"),
            event("Started", 69, "Task started by client"),
        ],
        ..v1::TaskState::default()
    }
}

pub(crate) fn deployment() -> v1::Deployment {
    let group = v1::DeploymentGroup {
        progress_deadline: Some(duration(600)),
        desired_total: 2,
        placed_allocs: 2,
        healthy_allocs: 2,
        require_progress_by_ns: NOW + 540 * SECOND,
        ..v1::DeploymentGroup::default()
    };
    v1::Deployment {
        id: DEPLOYMENT.to_owned(),
        namespace: "default".to_owned(),
        job_id: "web".to_owned(),
        job_version: 1,
        job_modify_index: 17,
        job_create_index: 10,
        status: "successful".to_owned(),
        status_description: "Deployment completed successfully".to_owned(),
        task_groups: [("app".to_owned(), group)].into(),
        eval_priority: 50,
        create_time_ns: NOW - 79 * SECOND,
        modify_time_ns: NOW - 60 * SECOND,
        create_index: 20,
        modify_index: 26,
    }
}

/// The deployment before its second allocation is healthy.
pub(crate) fn running_deployment() -> v1::Deployment {
    let mut deployment = deployment();
    deployment.status = "running".to_owned();
    deployment.status_description = "Deployment is running".to_owned();
    deployment.modify_index = 22;
    for group in deployment.task_groups.values_mut() {
        group.healthy_allocs = 1;
    }
    deployment
}

pub(crate) fn duration(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

pub(crate) fn node() -> v1::Node {
    let word = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let driver = |healthy, description: &str| v1::DriverInfo {
        detected: true,
        healthy,
        description: description.to_owned(),
    };
    v1::Node {
        id: NODE.to_owned(),
        name: "n1".to_owned(),
        datacenter: "dc1".to_owned(),
        node_pool: "default".to_owned(),
        address: "http://10.0.0.7:7201".to_owned(),
        attributes: [
            word("kernel.name", "linux"),
            word("os.name", "debian"),
            word("kafila.version", "0.1.0"),
        ]
        .into(),
        meta: [word("rack", "r1")].into(),
        drivers: [
            ("raw_exec".to_owned(), driver(true, "Healthy")),
            ("docker".to_owned(), driver(false, "cannot reach dockerd")),
        ]
        .into(),
        resources: Some(v1::NodeResources {
            cpu_mhz: 4_000,
            memory_mib: 7_965,
            disk_mib: 20_480,
        }),
        reserved: Some(v1::NodeResources::default()),
        min_dynamic_port: 20_000,
        max_dynamic_port: 32_000,
        host_ip: "10.0.0.7".to_owned(),
        host_networks: [(
            "public".to_owned(),
            v1::HostNetwork {
                addresses: vec!["203.0.113.7".to_owned(), "203.0.113.8".to_owned()],
                reserved_ports: vec![22, 443],
            },
        )]
        .into(),
        host_volumes: [(
            "data".to_owned(),
            v1::HostVolume {
                path: "/srv/data".to_owned(),
                read_only: true,
            },
        )]
        .into(),
        computed_class: "v1:123".to_owned(),
        status: "ready".to_owned(),
        eligibility: "eligible".to_owned(),
        status_updated_at_ns: NOW - 3_600 * SECOND,
        create_index: 4,
        modify_index: 5,
        ..v1::Node::default()
    }
}

/// The same node during a drain.
pub(crate) fn draining_node() -> v1::Node {
    let event = |subsystem: &str, message: &str, ago: u64| v1::NodeEvent {
        time_ns: NOW - ago * SECOND,
        subsystem: subsystem.to_owned(),
        message: message.to_owned(),
        details: [].into(),
    };
    v1::Node {
        eligibility: "ineligible".to_owned(),
        drain: Some(v1::DrainStrategy {
            spec: Some(v1::DrainSpec {
                deadline_ns: 3_600_000_000_000,
                ignore_system_jobs: true,
            }),
            force_deadline_ns: NOW + 3_510 * SECOND,
            started_at_ns: NOW - 90 * SECOND,
        }),
        last_drain: Some(v1::LastDrain {
            started_at_ns: NOW - 90 * SECOND,
            updated_at_ns: NOW - 90 * SECOND,
            status: "draining".to_owned(),
            meta: [("message".to_owned(), "new disks".to_owned())].into(),
        }),
        events: vec![
            v1::NodeEvent {
                details: [("deadline_reached".to_owned(), "true".to_owned())].into(),
                ..event("Drain", "Node drain complete", 7_200)
            },
            event("Drain", "Node drain strategy set", 90),
        ],
        ..node()
    }
}

pub(crate) fn node_pool() -> v1::NodePool {
    v1::NodePool {
        name: "gpu".to_owned(),
        description: "Nodes with cards".to_owned(),
        meta: [
            ("owner".to_owned(), "ml".to_owned()),
            ("environment".to_owned(), "prod".to_owned()),
        ]
        .into(),
        scheduler_configuration: Some(v1::NodePoolSchedulerConfiguration {
            scheduler_algorithm: "spread".to_owned(),
            memory_oversubscription_enabled: None,
        }),
        create_index: 20,
        modify_index: 21,
    }
}

pub(crate) fn scaling_policy() -> v1::ScalingPolicy {
    v1::ScalingPolicy {
        id: "c1d2e3f4-0000-4000-8000-000000000001".to_owned(),
        r#type: "horizontal".to_owned(),
        namespace: "default".to_owned(),
        job_id: "web".to_owned(),
        task_group: "app".to_owned(),
        enabled: true,
        min: 1,
        max: 5,
        policy: "{\"cooldown\":\"1m\"}".to_owned(),
        create_index: 30,
        modify_index: 31,
    }
}

pub(crate) fn namespace() -> v1::Namespace {
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<Vec<_>>()
    };
    v1::Namespace {
        name: "dev".to_owned(),
        description: "For trying out".to_owned(),
        meta: [("owner".to_owned(), "sre".to_owned())].into(),
        capabilities: Some(v1::NamespaceCapabilities {
            enabled_task_drivers: list(&["raw_exec", "mock_driver"]),
            disabled_task_drivers: list(&["mock_driver"]),
        }),
        node_pool_configuration: Some(v1::NamespaceNodePoolConfiguration {
            default: "batch".to_owned(),
            allowed: Some(v1::NodePoolPatterns {
                patterns: list(&["batch", "gpu-*"]),
            }),
            denied: Vec::new(),
        }),
        create_index: 30,
        modify_index: 31,
    }
}

/// The built-in namespace.
pub(crate) fn default_namespace() -> v1::Namespace {
    v1::Namespace {
        name: "default".to_owned(),
        description: "Default shared namespace".to_owned(),
        ..v1::Namespace::default()
    }
}

/// The built-in node pool.
pub(crate) fn default_pool() -> v1::NodePool {
    v1::NodePool {
        name: "default".to_owned(),
        description: "Default node pool.".to_owned(),
        ..v1::NodePool::default()
    }
}

pub(crate) fn scheduler_config() -> v1::SchedulerConfiguration {
    v1::SchedulerConfiguration {
        scheduler_algorithm: "binpack".to_owned(),
        preemption_config: Some(v1::PreemptionConfig {
            system_scheduler_enabled: true,
            ..v1::PreemptionConfig::default()
        }),
        memory_oversubscription_enabled: true,
        create_index: 7,
        modify_index: 12,
        ..v1::SchedulerConfiguration::default()
    }
}

pub(crate) fn leader() -> v1::Leader {
    v1::Leader {
        service: "plan-applier".to_owned(),
        address: "http://127.0.0.1:7102".to_owned(),
        replica: "dev".to_owned(),
        term: 3,
    }
}

/// Returns the answer to a dry run of job file `new` where `old` runs at index 17, or nothing: a
/// scheduler that would do `updates` about the group `app`.
pub(crate) fn planned(
    old: Option<&str>,
    new: &str,
    updates: jobdiff::GroupUpdates,
) -> v1::PlanJobResponse {
    let read = |text: &str| {
        let parsed = jobspec::parse("web.hcl", text, &jobspec::Inputs::default()).unwrap();
        jobspec::canonicalise(&parsed.job, model::Timestamp(NOW))
            .unwrap()
            .job
    };
    let (old, new) = (old.map(read), read(new));
    let updates = [("app".to_owned(), updates)];
    let mut diff = jobdiff::diff(old.as_ref(), Some(&new), true);
    jobdiff::annotate(&mut diff, old.as_ref(), Some(&new), &updates.clone().into());
    let updates = updates
        .iter()
        .map(|(group, one)| (group.clone(), one.into()));
    v1::PlanJobResponse {
        annotations: Some(v1::PlanAnnotations {
            desired_updates: updates.collect(),
            ..v1::PlanAnnotations::default()
        }),
        job_modify_index: old.map_or(0, |_| 17),
        diff: Some((&diff).into()),
        index: 20,
        ..v1::PlanJobResponse::default()
    }
}

/// A registration of the service `web-api`.
pub(crate) fn registration() -> v1::ServiceRegistration {
    v1::ServiceRegistration {
        id: "_nomad-task-8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234-group-app-web-api-http".to_owned(),
        name: "web-api".to_owned(),
        namespace: "default".to_owned(),
        node_id: "4d2f8b10-5c6e-4a1b-9d3f-7e8f90123456".to_owned(),
        datacenter: "dc1".to_owned(),
        job_id: "web".to_owned(),
        alloc_id: "8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234".to_owned(),
        tags: vec!["v2".to_owned(), "a=b".to_owned()],
        address: "10.0.0.7".to_owned(),
        port: 25_000,
        create_index: 40,
        modify_index: 42,
    }
}

/// A failing check of the service `web-api`.
pub(crate) fn check() -> v1::AllocationCheck {
    v1::AllocationCheck {
        id: "_nomad-check-8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234-group-app-0-0".to_owned(),
        mode: "healthiness".to_owned(),
        status: "failure".to_owned(),
        status_code: 503,
        output: "down\nsince noon\n".to_owned(),
        time_ns: 1_790_000_000_000_000_000,
        task_group: "app".to_owned(),
        task: String::new(),
        service: "web-api".to_owned(),
        check: "alive".to_owned(),
    }
}
