//! Valid jobs and nodes with nothing special about them; a test changes the fields of its subject.

use std::collections::BTreeMap;
use std::time::Duration;

use model::job::{
    DelayFunction, EphemeralDisk, HealthCheck, Job, JobType, LogConfig, MigrateStrategy,
    ReschedulePolicy, RestartMode, RestartPolicy, Task, TaskGroup, TaskResources, UpdateStrategy,
};
use model::node::{DeviceInstance, DriverInfo, NodeDevice};
use model::template::{ChangeMode, Template};
use model::{
    AllocId, AllocatedResources, Allocation, ComparableResources, DesiredStatus, DesiredTransition,
    EvalId, Evaluation, Node, NodeEligibility, NodeId, NodeStatus, Plan, Service, Timestamp,
    TriggeredBy,
};

/// Returns a ready, eligible node `n<number>` in `dc1` and the pool `default`, with 4,000 MHz,
/// 8,192 MiB of memory, 100,000 MiB of disk and a healthy `mock_driver`.
pub fn node(number: u128) -> Node {
    let healthy = DriverInfo {
        detected: true,
        healthy: true,
        description: String::new(),
    };
    Node {
        id: NodeId::from_random(number),
        secret: format!("secret-{number}"),
        name: format!("n{number}"),
        datacenter: "dc1".into(),
        node_pool: "default".into(),
        node_class: String::new(),
        address: String::new(),
        attributes: BTreeMap::from([("kernel.name".to_owned(), "linux".to_owned())]),
        meta: BTreeMap::new(),
        drivers: BTreeMap::from([("mock_driver".to_owned(), healthy)]),
        resources: ComparableResources {
            cpu_mhz: 4_000,
            memory_mib: 8_192,
            disk_mib: 100_000,
        },
        reserved: ComparableResources::default(),
        reserved_ports: Vec::new(),
        min_dynamic_port: 20_000,
        max_dynamic_port: 32_000,
        host_ip: "127.0.0.1".into(),
        host_networks: BTreeMap::new(),
        cores: BTreeMap::new(),
        max_allocs: 0,
        devices: Vec::new(),
        host_volumes: BTreeMap::new(),
        csi_nodes: Default::default(),
        csi_controllers: Default::default(),
        dials_out: false,
        computed_class: "v1:plain".into(),
        status: NodeStatus::Ready,
        status_description: String::new(),
        eligibility: NodeEligibility::Eligible,
        status_updated_at: Timestamp::NEVER,
        drain: None,
        last_drain: None,
        lacks_evals: false,
        events: Vec::new(),
    }
}

/// Returns a service job with one group `web` of `count` allocations and no update strategy.
pub fn service(id: &str, count: u32) -> Job {
    job(id, JobType::Service, count)
}

/// Returns a batch job with one group `web` of `count` allocations.
pub fn batch(id: &str, count: u32) -> Job {
    job(id, JobType::Batch, count)
}

fn job(id: &str, job_type: JobType, count: u32) -> Job {
    Job {
        namespace: "default".into(),
        id: id.into(),
        name: id.into(),
        region: "global".into(),
        job_type,
        priority: 50,
        all_at_once: false,
        datacenters: vec!["*".into()],
        node_pool: "default".into(),
        constraints: Vec::new(),
        affinities: Vec::new(),
        spreads: Vec::new(),
        task_groups: vec![group("web", job_type, count)],
        meta: BTreeMap::new(),
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
        stop: false,
        version: 0,
        submit_time: Timestamp::NEVER,
    }
}

/// Returns a group of one task, with the reschedule policy that the job type has by default.
pub fn group(name: &str, job_type: JobType, count: u32) -> TaskGroup {
    let reschedule = match job_type {
        JobType::Service => Some(ReschedulePolicy {
            attempts: 0,
            interval: Duration::ZERO,
            delay: Duration::from_secs(30),
            delay_function: DelayFunction::Exponential,
            max_delay: Duration::from_secs(3_600),
            unlimited: true,
        }),
        JobType::Batch => Some(ReschedulePolicy {
            attempts: 1,
            interval: Duration::from_secs(86_400),
            delay: Duration::from_secs(5),
            delay_function: DelayFunction::Constant,
            max_delay: Duration::ZERO,
            unlimited: false,
        }),
        JobType::System | JobType::Sysbatch => None,
    };
    let migrate = (job_type == JobType::Service).then_some(MigrateStrategy {
        max_parallel: 1,
        health_check: HealthCheck::Checks,
        min_healthy_time: Duration::from_secs(10),
        healthy_deadline: Duration::from_secs(300),
    });
    TaskGroup {
        name: name.into(),
        count,
        tasks: vec![task("server")],
        restart: restart(),
        reschedule,
        migrate,
        ephemeral_disk: EphemeralDisk {
            size_mib: 300,
            sticky: false,
            migrate: false,
        },
        ..TaskGroup::default()
    }
}

/// Returns a task for `mock_driver` that asks for 500 MHz and 256 MiB of memory.
pub fn task(name: &str) -> Task {
    Task {
        name: name.into(),
        driver: "mock_driver".into(),
        user: String::new(),
        config: serde_json::Map::new(),
        env: BTreeMap::new(),
        meta: BTreeMap::new(),
        constraints: Vec::new(),
        affinities: Vec::new(),
        resources: TaskResources {
            cpu_mhz: 500,
            cores: 0,
            memory_mib: 256,
            memory_max: model::MemoryMax::AsAsked,
            devices: Vec::new(),
            networks: Vec::new(),
        },
        restart: restart(),
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
    }
}

fn restart() -> RestartPolicy {
    RestartPolicy {
        attempts: 2,
        interval: Duration::from_secs(1_800),
        delay: Duration::from_secs(15),
        mode: RestartMode::Fail,
        render_templates: false,
    }
}

/// Returns a policy without a limit of attempts; delays in seconds, `max_delay` 0: no cap.
pub fn reschedule_policy(
    delay_function: DelayFunction,
    delay: u64,
    max_delay: u64,
) -> ReschedulePolicy {
    ReschedulePolicy {
        attempts: 0,
        interval: Duration::ZERO,
        delay: Duration::from_secs(delay),
        delay_function,
        max_delay: Duration::from_secs(max_delay),
        unlimited: true,
    }
}

/// Returns a rolling update of `max_parallel` at once, without canaries.
pub fn rolling_update(max_parallel: u32) -> UpdateStrategy {
    UpdateStrategy {
        max_parallel,
        health_check: HealthCheck::Checks,
        min_healthy_time: Duration::from_secs(10),
        healthy_deadline: Duration::from_secs(300),
        progress_deadline: Duration::from_secs(600),
        auto_revert: false,
        auto_promote: false,
        canary: 0,
        stagger: Duration::from_secs(30),
    }
}

/// Returns a pending evaluation of `job`, made when it was registered.
pub fn evaluation(number: u128, job: &Job) -> Evaluation {
    Evaluation::pending(
        EvalId::from_random(number),
        job.key(),
        job.job_type,
        job.priority,
        TriggeredBy::JobRegister,
        Timestamp::NEVER,
    )
}

/// Returns a device group of Nvidia's with healthy instances of these ids.
pub fn gpus(name: &str, ids: &[&str]) -> NodeDevice {
    let instances = ids.iter().map(|id| DeviceInstance {
        id: (*id).to_owned(),
        healthy: true,
    });
    NodeDevice {
        vendor: "nvidia".into(),
        device_type: "gpu".into(),
        name: name.into(),
        instances: instances.collect(),
        ..NodeDevice::default()
    }
}

/// Returns a plan for an evaluation that changes nothing, made at index 1.
pub fn plan(eval: &Evaluation) -> Plan {
    Plan {
        eval_id: eval.id,
        eval_token: String::new(),
        eval_modify_index: 1,
        job: eval.job.clone(),
        priority: eval.priority,
        all_at_once: false,
        snapshot_index: 1,
        job_modify_index: 1,
        stops: [].into(),
        placements: [].into(),
        preemptions: [].into(),
        deployment: None,
        deployment_updates: Vec::new(),
        followup_evals: Vec::new(),
        eval_outcome: None,
        trace_parent: String::new(),
    }
}

/// Returns allocation `job.web[0]` of `job`, whose create index is taken to be 1, on a node.
pub fn allocation(number: u128, job: &Job, node_id: NodeId) -> Allocation {
    Allocation {
        id: AllocId::from_random(number),
        eval_id: EvalId::from_random(number),
        node_id,
        namespace: job.namespace.as_str().into(),
        job_id: job.id.as_str().into(),
        job_version: job.version,
        job_create_index: 1,
        task_group: job.task_groups[0].name.as_str().into(),
        name_index: 0,
        resources: AllocatedResources {
            total: job.task_groups[0].ask(),
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
        create_time: Timestamp::NEVER,
        modify_time: Timestamp::NEVER,
        metric: None,
    }
}

/// A template that writes `data` to `destination`, with every default.
pub fn template(destination: &str, data: &str) -> Template {
    Template {
        source: String::new(),
        destination: destination.to_owned(),
        data: data.to_owned(),
        change_mode: ChangeMode::Restart,
        change_signal: String::new(),
        change_script: None,
        once: false,
        splay: Duration::from_secs(5),
        perms: "0644".to_owned(),
        uid: None,
        gid: None,
        left_delimiter: "{{".to_owned(),
        right_delimiter: "}}".to_owned(),
        env: false,
        wait: None,
        error_on_missing_key: false,
    }
}

/// Returns a service at the port `port`, without tags and checks.
pub fn registered(name: &str, port: &str) -> Service {
    Service {
        name: name.to_owned(),
        port: port.to_owned(),
        ..Service::default()
    }
}
