//! Tests of the replica against a recomputation, and of derived facts against tables.

mod derived;
mod history;
mod scheduling;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::job::{EphemeralDisk, LogConfig, RestartMode, RestartPolicy, TaskResources};
use model::{
    AllocClient, AllocId, AllocatedPort, AllocatedResources, Allocation, ClientStatus,
    ComparableResources, DesiredStatus, DesiredTransition, EvalId, Job, JobKey, JobType, Node,
    NodeEligibility, NodeId, NodeStatus, Task, TaskGroup, Timestamp,
};

use crate::{Change, Entity, Key};

fn alloc_id(n: u128) -> AllocId {
    AllocId::from_random(n)
}

fn node_id(n: u128) -> NodeId {
    NodeId::from_random(n)
}

fn eval_id(n: u128) -> EvalId {
    EvalId::from_random(n)
}

fn job_key() -> JobKey {
    JobKey::new("default", "web")
}

fn allocation(id: u128, node: u128) -> Allocation {
    Allocation {
        id: alloc_id(id),
        eval_id: eval_id(1),
        node_id: node_id(node),
        namespace: Arc::from("default"),
        job_id: Arc::from("web"),
        job_version: 0,
        job_create_index: 1,
        task_group: Arc::from("app"),
        name_index: u32::try_from(id % 1_000).unwrap_or_default(),
        resources: AllocatedResources {
            total: ComparableResources {
                cpu_mhz: 100,
                memory_mib: 64,
                disk_mib: 300,
            },
            ports: vec![AllocatedPort {
                label: "http".to_owned(),
                value: 20_000 + u16::try_from(id % 10_000).unwrap_or_default(),
                to: 80,
                host_ip: "127.0.0.1".to_owned(),
                ignore_collision: false,
                task: String::new(),
            }],
            ..AllocatedResources::default()
        },
        desired_status: DesiredStatus::Run,
        desired_description: String::new(),
        transition: DesiredTransition::default(),
        deployment_id: None,
        canary: false,
        client_status_override: None,
        unknown_since: Timestamp::NEVER,
        previous_alloc: None,
        next_alloc: None,
        followup_eval_id: None,
        preempted_by: None,
        preempted_allocs: Vec::new(),
        reschedules: Vec::new(),
        create_time: Timestamp(1),
        modify_time: Timestamp::NEVER,
        metric: None,
    }
}

fn job(stop: bool) -> Job {
    let restart = RestartPolicy {
        attempts: 2,
        interval: Duration::from_secs(1_800),
        delay: Duration::from_secs(15),
        mode: RestartMode::Fail,
        render_templates: false,
    };
    Job {
        namespace: "default".to_owned(),
        id: "web".to_owned(),
        name: "web".to_owned(),
        region: "global".to_owned(),
        job_type: JobType::Service,
        periodic: None,
        parameterized: None,
        parent_id: String::new(),
        dispatched: false,
        forced_version: None,
        written_by: None,
        payload: model::Payload::default(),
        dispatch_token: String::new(),
        ui: None,
        update: None,
        priority: 50,
        all_at_once: false,
        datacenters: vec!["*".to_owned()],
        node_pool: "default".to_owned(),
        constraints: Vec::new(),
        affinities: Vec::new(),
        spreads: Vec::new(),
        task_groups: vec![TaskGroup {
            name: "app".to_owned(),
            count: 2,
            tasks: vec![Task {
                name: "server".to_owned(),
                driver: "mock_driver".to_owned(),
                user: String::new(),
                config: serde_json::Map::new(),
                env: BTreeMap::new(),
                meta: BTreeMap::new(),
                constraints: Vec::new(),
                affinities: Vec::new(),
                resources: TaskResources {
                    cpu_mhz: 100,
                    memory_mib: 64,
                    memory_max: model::MemoryMax::AsAsked,
                    ..TaskResources::default()
                },
                restart,
                kill_timeout: Duration::from_secs(5),
                kill_signal: String::new(),
                leader: false,
                shutdown_delay: Duration::ZERO,
                lifecycle: None,
                logs: LogConfig {
                    max_files: 10,
                    max_file_size_mib: 10,
                    disabled: false,
                },
                ..Task::default()
            }],
            restart,
            ephemeral_disk: EphemeralDisk {
                size_mib: 300,
                sticky: false,
                migrate: false,
            },
            ..TaskGroup::default()
        }],
        meta: BTreeMap::new(),
        stop,
        version: 0,
        submit_time: Timestamp(1),
    }
}

fn put_alloc(alloc: Allocation, create_index: u64, modify_index: u64) -> Change {
    Change::Put {
        key: Key::Alloc(alloc.id),
        entity: Entity::Alloc(Box::new(alloc)),
        create_index,
        modify_index,
    }
}

fn put_client(id: AllocId, status: ClientStatus, modify_index: u64) -> Change {
    Change::Put {
        key: Key::AllocClient(id),
        entity: Entity::AllocClient(Box::new(AllocClient {
            status,
            ..AllocClient::default()
        })),
        create_index: modify_index,
        modify_index,
    }
}

fn put_job(job: Job, index: u64) -> Change {
    Change::Put {
        key: Key::Job(job.key()),
        entity: Entity::Job(Box::new(job)),
        create_index: index,
        modify_index: index,
    }
}

/// Returns a ready node; two of one `rack` differ in unique facts only.
fn machine(id: u128, rack: u8, eligible: bool) -> Node {
    Node {
        id: node_id(id),
        secret: String::new(),
        name: format!("n{id}"),
        datacenter: "dc1".to_owned(),
        node_pool: "default".to_owned(),
        node_class: String::new(),
        address: String::new(),
        attributes: BTreeMap::from([("unique.hostname".to_owned(), format!("n{id}"))]),
        meta: BTreeMap::from([("rack".to_owned(), format!("r{rack}"))]),
        drivers: BTreeMap::new(),
        resources: ComparableResources {
            cpu_mhz: 4_000,
            memory_mib: 8_192,
            disk_mib: 100_000,
        },
        reserved: ComparableResources::default(),
        reserved_ports: Vec::new(),
        min_dynamic_port: 20_000,
        max_dynamic_port: 32_000,
        host_ip: "127.0.0.1".to_owned(),
        computed_class: "v1:0".to_owned(),
        status: NodeStatus::Ready,
        status_description: String::new(),
        eligibility: if eligible {
            NodeEligibility::Eligible
        } else {
            NodeEligibility::Ineligible
        },
        status_updated_at: Timestamp::NEVER,
        drain: None,
        last_drain: None,
        lacks_evals: false,
        dials_out: false,
        events: Vec::new(),
        host_networks: BTreeMap::new(),
        cores: BTreeMap::new(),
        max_allocs: 0,
        devices: Vec::new(),
        host_volumes: BTreeMap::new(),
        csi_nodes: Default::default(),
        csi_controllers: Default::default(),
    }
}

fn put_node(node: Node, create_index: u64, modify_index: u64) -> Change {
    Change::Put {
        key: Key::Node(node.id),
        entity: Entity::Node(Box::new(node)),
        create_index,
        modify_index,
    }
}
