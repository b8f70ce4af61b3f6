//! Clusters and jobs for measurements of the scheduler.

#![allow(
    dead_code,
    reason = "the benchmark and the example each use a part of it"
)]

use std::time::Duration;

use model::job::{Network, Port};
use model::{
    Affinity, AllocatedPort, Constraint, Evaluation, Indexed, Job, Node, Operator,
    SchedulerConfiguration, Spread, Timestamp,
};
use nix::time::{ClockId, clock_gettime};
use scheduler::{Decision, schedule, schedule_with};
use state::{Change, Entity, Key, Snapshot, State};
use test_kit::builders;

pub(crate) const NODES: [u32; 4] = [500, 1_000, 5_000, 10_000];
pub(crate) const RACKS: [u32; 3] = [25, 50, 75];
pub(crate) const COUNTS: [u32; 5] = [50, 300, 600, 900, 1_200];

const NOW: Timestamp = Timestamp(1);

/// The requirements of a job besides cpu and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Plain,
    /// Evenly over the racks.
    Spread,
    /// An affinity for a quarter of the racks.
    Affinity,
    SpreadAndAffinity,
    DistinctHosts,
    /// One dynamic port.
    Ports,
    /// Evenly over the hosts: as many values as there are nodes.
    HostSpread,
    /// At most 100 in a rack.
    DistinctProperty,
    /// A constraint that is checked on every node.
    UniqueConstraint,
}

impl Shape {
    pub(crate) const ALL: [Self; 6] = [
        Self::Plain,
        Self::Spread,
        Self::Affinity,
        Self::SpreadAndAffinity,
        Self::DistinctHosts,
        Self::Ports,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Spread => "spread",
            Self::Affinity => "affinity",
            Self::SpreadAndAffinity => "spread+affinity",
            Self::DistinctHosts => "distinct_hosts",
            Self::Ports => "ports",
            Self::HostSpread => "spread over hosts",
            Self::DistinctProperty => "distinct_property",
            Self::UniqueConstraint => "unique constraint",
        }
    }
}

/// Returns a node with 32 GB of memory and cpu to spare, in one of the racks.
fn node(number: u32, racks: u32) -> Node {
    let mut node = builders::node(u128::from(number) + 1);
    node.resources.cpu_mhz = 64_000;
    node.resources.memory_mib = 32_768;
    let rack = format!("r{}", number % racks);
    node.meta.insert("rack".into(), rack);
    let host = format!("host-{number}");
    node.attributes.insert("unique.hostname".into(), host);
    node.computed_class = placement::computed_class(&node);
    node
}

pub(crate) fn cluster(nodes: u32, racks: u32) -> Snapshot {
    let nodes = (0..nodes).map(|number| {
        let node = node(number, racks);
        put(Key::Node(node.id), Entity::Node(Box::new(node)), 1)
    });
    State::from_list(1, nodes).snapshot()
}

/// Fills the nodes of `snapshot` to 70 % of their memory with `allocs` allocations of other jobs, each
/// of which holds a port.
pub(crate) fn fill(snapshot: &Snapshot, allocs: u32) -> Snapshot {
    let nodes: Vec<_> = snapshot.nodes().map(|node| node.value.id).collect();
    let per_node = (allocs as usize / nodes.len()).max(1) as u64;
    let mut state = snapshot.to_state();
    let changes = (0..allocs).map(|number| {
        let job = builders::service(&format!("job{}", number % 1_000), 1);
        let place = number as usize % nodes.len();
        let mut alloc = builders::allocation(u128::from(number) + 1, &job, nodes[place]);
        // From 60 to 80 %, so that nodes differ.
        let percent = 60 + place as u64 % 21;
        let amount = 32_768 * percent / 100 / per_node;
        alloc.resources.total.memory_mib = amount;
        alloc.resources.total.cpu_mhz = amount;
        alloc.resources.total.disk_mib = 1;
        let port = 20_000 + number as usize / nodes.len();
        alloc.resources.ports = vec![AllocatedPort {
            label: "http".into(),
            value: u16::try_from(port).expect("no node has that many allocations"),
            to: 80,
            host_ip: "127.0.0.1".into(),
            ignore_collision: false,
            task: String::new(),
        }];
        put(Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc)), 2)
    });
    state.apply(2, changes.collect::<Vec<_>>());
    state.snapshot()
}

/// Fills the nodes of `snapshot` so that none has room for one of [`job`]: with `allocs` allocations of
/// a thousand other jobs, whose priorities go from 10 to 50.
pub(crate) fn fill_up(snapshot: &Snapshot, allocs: u32) -> Snapshot {
    let nodes: Vec<_> = snapshot.nodes().map(|node| node.value.id).collect();
    let per_node = (allocs as usize / nodes.len()).max(1) as u64;
    let mut state = snapshot.to_state();
    let jobs: Vec<_> = (0..1_000_u32)
        .map(|number| {
            let mut job = builders::service(&format!("job{number}"), 1);
            job.priority = 10 + u8::try_from(number % 5).expect("below 5") * 10;
            job
        })
        .collect();
    let registered = jobs.iter().flat_map(|job| {
        let version = Key::JobVersion(job.key(), job.version);
        [
            put(version, Entity::JobVersion(Box::new(job.clone())), 2),
            put(Key::Job(job.key()), Entity::Job(Box::new(job.clone())), 2),
        ]
    });
    let placed = (0..allocs).map(|number| {
        let place = number as usize % nodes.len();
        // A node's allocations are of different jobs and priorities.
        let job = &jobs[(place + number as usize / nodes.len() * 7) % jobs.len()];
        let mut alloc = builders::allocation(u128::from(number) + 1, job, nodes[place]);
        alloc.job_create_index = 2;
        let percent = 85 + place as u64 % 11;
        let amount = 32_768 * percent / 100 / per_node;
        alloc.resources.total.memory_mib = amount;
        alloc.resources.total.cpu_mhz = amount;
        alloc.resources.total.disk_mib = 1;
        put(Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc)), 2)
    });
    let changes: Vec<_> = registered.chain(placed).collect();
    state.apply(2, changes);
    state.snapshot()
}

fn put(key: Key, entity: Entity, index: u64) -> Change {
    Change::Put {
        key,
        entity,
        create_index: index,
        modify_index: index,
    }
}

/// Returns a list of those racks among the first `of` whose number leaves 0 when divided by `step`.
fn racks(of: u32, step: usize) -> String {
    let names = (0..of).step_by(step).map(|rack| format!("r{rack}"));
    names.collect::<Vec<_>>().join(",")
}

/// Returns a job of which half the racks may take allocations of 6,000 MHz and 6,000 MiB.
pub(crate) fn job(shape: Shape, count: u32, rack_count: u32) -> Job {
    let mut job = builders::service("load", count);
    job.constraints.push(Constraint {
        left: "${meta.rack}".into(),
        operator: Operator::SetContainsAny,
        right: racks(rack_count, 2),
    });
    let group = &mut job.task_groups[0];
    group.tasks[0].resources.cpu_mhz = 6_000;
    group.tasks[0].resources.memory_mib = 6_000;
    if matches!(shape, Shape::Spread | Shape::SpreadAndAffinity) {
        group.spreads.push(Spread {
            attribute: "${meta.rack}".into(),
            weight: 100,
            targets: Vec::new(),
        });
    }
    if matches!(shape, Shape::Affinity | Shape::SpreadAndAffinity) {
        group.affinities.push(Affinity {
            left: "${meta.rack}".into(),
            operator: Operator::SetContainsAny,
            right: racks(rack_count, 4),
            weight: 100,
        });
    }
    if shape == Shape::DistinctHosts {
        group.constraints.push(Constraint {
            left: String::new(),
            operator: Operator::DistinctHosts,
            right: String::new(),
        });
    }
    if shape == Shape::HostSpread {
        group.spreads.push(Spread {
            attribute: "${attr.unique.hostname}".into(),
            weight: 100,
            targets: Vec::new(),
        });
    }
    if shape == Shape::DistinctProperty {
        group.constraints.push(Constraint {
            left: "${meta.rack}".into(),
            operator: Operator::DistinctProperty,
            right: "100".into(),
        });
    }
    if shape == Shape::UniqueConstraint {
        group.constraints.push(Constraint {
            left: "${attr.unique.hostname}".into(),
            operator: Operator::NotEqual,
            right: "host-7".into(),
        });
    }
    if shape == Shape::Ports {
        group.networks = vec![Network {
            mode: "host".into(),
            ports: vec![Port {
                label: "http".into(),
                static_port: None,
                to: None,
                host_network: "default".into(),
                ignore_collision: false,
            }],
            ..Network::default()
        }];
    }
    job
}

/// Registers `job` and makes its evaluation.
pub(crate) fn register(snapshot: &Snapshot, job: Job) -> (Snapshot, Indexed<Evaluation>) {
    let eval = builders::evaluation(1, &job);
    let mut state = snapshot.to_state();
    let objects = [
        put(Key::Eval(eval.id), Entity::Eval(Box::new(eval.clone())), 3),
        put(Key::Job(job.key()), Entity::Job(Box::new(job)), 3),
    ];
    state.apply(3, objects);
    let eval = Indexed {
        create_index: 3,
        modify_index: 3,
        value: eval,
    };
    (state.snapshot(), eval)
}

pub(crate) fn plan(snapshot: &Snapshot, eval: &Indexed<Evaluation>, seed: u64) -> Decision {
    schedule(snapshot, eval, NOW, seed)
}

/// As [`plan`], with preemption enabled for services.
pub(crate) fn plan_with_preemption(
    snapshot: &Snapshot,
    eval: &Indexed<Evaluation>,
    seed: u64,
) -> Decision {
    let mut config = SchedulerConfiguration::default();
    config.preemption.service = true;
    schedule_with(&config, snapshot, eval, NOW, seed)
}

/// Returns the thread's time on a core, without other processes.
pub(crate) fn timed<T>(body: impl FnOnce() -> T) -> (T, Duration) {
    let began = on_core();
    let value = body();
    (value, on_core() - began)
}

fn on_core() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    Duration::from(now.expect("every kernel has this clock"))
}
