//! The arithmetic against the reference, and the choice against its promises on random nodes.

use std::sync::Arc;

use model::job::{DeviceRequest, Network, Port};
use model::node::{DeviceInstance, NodeDevice};
use model::{
    AllocatedCores, AllocatedDevice, AllocatedPort, Allocation, ComparableResources, Node,
};
use placement::Requirements;
use proptest::prelude::*;
use state::{AllocView, NodeUsage};
use test_kit::builders;

use super::candidates::Candidate;
use super::choice::victims;
use super::cost::{Need, penalty, preemption_score};
use super::node_fit::NodeFit;
use super::preempted::Preempted;

fn amounts(cpu_mhz: u64, memory_mib: u64, disk_mib: u64) -> ComparableResources {
    ComparableResources {
        cpu_mhz,
        memory_mib,
        disk_mib,
    }
}

#[test]
fn the_nearest_costs_least() {
    let need = Need::new(amounts(2_048, 512, 4_096));
    for (held, want) in [
        (amounts(2_048, 512, 4_096), 0.0),
        (amounts(1_024, 400, 1_024), 0.928),
        (amounts(8_192, 200, 1_024), 3.152),
        (amounts(2_048, 500, 4_096), 0.023),
    ] {
        let distance = need.distance(held);
        assert!((distance - want).abs() < 0.000_5, "{held:?}: {distance}");
    }
    let mut left = need;
    left.less(amounts(4_000, 256, 4_096));
    // Only memory is still asked for, half of it.
    let distance = left.distance(amounts(9_999, 128, 9_999));
    assert!((distance - 0.5).abs() < 1e-9, "{distance}");
}

#[test]
fn a_group_that_loses_more_than_it_should_costs_more_and_more() {
    let of = |max_parallel| [0, 1, 2, 3].map(|evicted| penalty(max_parallel, evicted));
    assert_eq!(of(0), [0.0; 4]);
    assert_eq!(of(1), [0.0, 50.0, 100.0, 150.0]);
    assert_eq!(of(3), [0.0, 0.0, 0.0, 50.0]);
}

#[test]
fn fewer_and_less_important_victims_score_better() {
    let sets: [&[u8]; 7] = [
        &[1],
        &[20],
        &[20, 20],
        &[50],
        &[50, 50, 50],
        &[90],
        &[90, 90, 90, 90, 90, 90],
    ];
    let scores = sets.map(|set| preemption_score(set.iter().copied()));
    assert!(
        scores.is_sorted_by(|left, right| left > right),
        "{scores:?}"
    );
    assert!(scores.iter().all(|score| (0.0..1.0).contains(score)));
}

fn view(number: u128, held: &RunningAlloc) -> AllocView {
    let job = builders::service(&format!("low{number}"), 1);
    let mut alloc: Allocation = builders::allocation(number, &job, builders::node(1).id);
    let mut total = amounts(held.cpu_mhz, held.memory_mib, 1);
    total.cpu_mhz += cores_mhz(&held.cores);
    alloc.resources.total = total;
    if !held.cores.is_empty() {
        alloc.resources.cores = vec![AllocatedCores {
            task: "web".into(),
            ids: held.cores.clone(),
        }];
    }
    let devices = held.devices.iter();
    alloc.resources.devices = devices
        .map(|(kind, id)| AllocatedDevice {
            task: "web".into(),
            vendor: "nvidia".into(),
            device_type: "gpu".into(),
            name: (*kind).to_owned(),
            instance_ids: vec![(*id).to_owned()],
        })
        .collect();
    let ports = held.ports.iter();
    alloc.resources.ports = ports
        .map(|port| AllocatedPort {
            label: "http".into(),
            value: *port,
            to: *port,
            host_ip: "127.0.0.1".into(),
            ignore_collision: false,
            task: String::new(),
        })
        .collect();
    AllocView {
        alloc: Arc::new(alloc),
        create_index: u64::try_from(number).unwrap(),
        alloc_modify_index: 1,
        client: None,
        client_modify_index: 0,
    }
}

/// A running allocation: its cpu, memory, ports, cores and devices, and its priority; `None`: it cannot
/// be preempted.
#[derive(Clone, Debug)]
struct RunningAlloc {
    cpu_mhz: u64,
    memory_mib: u64,
    ports: Vec<u16>,
    cores: Vec<u16>,
    /// Kind and id.
    devices: Vec<(&'static str, &'static str)>,
    priority: Option<u8>,
    max_parallel: u32,
}

fn running_alloc() -> impl Strategy<Value = RunningAlloc> {
    let port = prop_oneof![Just(88), Just(443), 20_000..20_004_u16];
    (
        0..1_200_u64,
        0..1_200_u64,
        prop::collection::btree_set(port, 0..3),
        prop::collection::btree_set(0..CORES_MHZ.len(), 0..2),
        prop::collection::btree_set(prop::sample::select(&DEVICES), 0..2),
        prop::option::weighted(0.8, 1..60_u8),
        0..3_u32,
    )
        .prop_map(
            |(cpu_mhz, memory_mib, ports, cores, devices, priority, max_parallel)| RunningAlloc {
                cpu_mhz,
                memory_mib,
                ports: ports.into_iter().collect(),
                cores: cores
                    .into_iter()
                    .map(|id| u16::try_from(id).unwrap())
                    .collect(),
                devices: devices.into_iter().collect(),
                priority,
                max_parallel,
            },
        )
}

#[derive(Clone, Debug)]
struct Asked {
    cpu_mhz: u32,
    memory_mib: u32,
    static_ports: Vec<u16>,
    dynamic_ports: usize,
    /// Instead of cpu; 0: none.
    cores: u32,
    /// Of one kind; 0: none.
    gpus: u64,
}

fn asked() -> impl Strategy<Value = Asked> {
    let statics = prop::sample::subsequence(vec![88_u16, 443, 20_001], 0..3);
    let cores = prop_oneof![2 => Just(0), 1 => 1..4_u32];
    let gpus = prop_oneof![2 => Just(0), 1 => 1..4_u64];
    let amounts = (1..2_000_u32, 1..2_000_u32);
    (amounts, statics, 0..4_usize, cores, gpus).prop_map(
        |((cpu_mhz, memory_mib), static_ports, dynamic_ports, cores, gpus)| Asked {
            cpu_mhz: if cores == 0 { cpu_mhz } else { 0 },
            memory_mib,
            static_ports,
            dynamic_ports,
            cores,
            gpus,
        },
    )
}

/// The cores of the node, of different speeds.
const CORES_MHZ: [u32; 5] = [100, 700, 200, 400, 300];

/// Its devices: kind and id.
const DEVICES: [(&str, &str); 5] = [
    ("k80", "a"),
    ("k80", "b"),
    ("k80", "c"),
    ("t4", "d"),
    ("t4", "e"),
];

fn cores_mhz(ids: &[u16]) -> u64 {
    ids.iter()
        .map(|id| u64::from(CORES_MHZ[usize::from(*id)]))
        .sum()
}

fn requirements(asked: &Asked) -> Requirements {
    let mut job = builders::service("high", 1);
    let group = &mut job.task_groups[0];
    group.tasks[0].resources.cpu_mhz = asked.cpu_mhz;
    group.tasks[0].resources.memory_mib = asked.memory_mib;
    group.tasks[0].resources.cores = asked.cores;
    if asked.gpus > 0 {
        group.tasks[0].resources.devices = vec![DeviceRequest {
            name: "gpu".into(),
            count: asked.gpus,
            constraints: Vec::new(),
            affinities: Vec::new(),
        }];
    }
    let statics = asked.static_ports.iter().map(|port| Some(*port));
    let dynamics = (0..asked.dynamic_ports).map(|_| None);
    let ports = statics.chain(dynamics).enumerate();
    let ports = ports.map(|(number, static_port)| Port {
        label: format!("p{number}"),
        static_port,
        to: None,
        host_network: "default".into(),
        ignore_collision: false,
    });
    group.networks = vec![Network {
        mode: "host".into(),
        ports: ports.collect(),
        ..Network::default()
    }];
    Requirements::new(&job, &job.task_groups[0])
}

fn node() -> Node {
    let mut node = builders::node(1);
    node.resources = amounts(2_000, 2_000, 100_000);
    (node.min_dynamic_port, node.max_dynamic_port) = (20_000, 20_003);
    node.cores = (0..).zip(CORES_MHZ).collect();
    for name in ["k80", "t4"] {
        let of_kind = DEVICES.iter().filter(|(kind, _)| *kind == name);
        let instances = of_kind.map(|(_, id)| DeviceInstance {
            id: (*id).to_owned(),
            healthy: true,
        });
        node.devices.push(NodeDevice {
            vendor: "nvidia".into(),
            device_type: "gpu".into(),
            name: name.into(),
            instances: instances.collect(),
            ..NodeDevice::default()
        });
    }
    node
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// It fits without the victims, not without fewer of them, and it is found whenever it would fit
    /// without all candidates.
    #[test]
    fn victims_are_enough_and_none_is_too_many(
        mut held in prop::collection::vec(running_alloc(), 0..9),
        asked in asked(),
        max_allocs in prop_oneof![2 => Just(0), 1 => 1..9_u32],
    ) {
        held.sort_by_key(|held| held.priority);
        let mut taken = std::collections::BTreeSet::new();
        for held in &mut held {
            // Each of these is held once.
            held.ports.retain(|port| taken.insert(format!("port {port}")));
            held.cores.retain(|id| taken.insert(format!("core {id}")));
            held.devices.retain(|(_, id)| taken.insert(format!("device {id}")));
        }
        let (mut node, requirements) = (node(), requirements(&asked));
        node.max_allocs = max_allocs;
        let views: Vec<_> = (1..).zip(&held).map(|(number, held)| view(number, held)).collect();
        let mut usage = NodeUsage::default();
        for view in &views {
            usage.add(&view.alloc.resources);
        }
        let candidates: Vec<_> = views.iter().zip(&held).filter_map(|(view, held)| {
            Some(Candidate { view, priority: held.priority?, max_parallel: held.max_parallel })
        }).collect();
        let room = NodeFit { node: &node, usage: &usage, requirements: &requirements };
        let fits_without = |gone: &[usize]| {
            let mut usage = usage.clone();
            for position in gone {
                usage.remove(candidates[*position].resources());
            }
            fits(&node, &usage, &asked, &requirements)
        };
        let all: Vec<_> = (0..candidates.len()).collect();
        let chosen = victims(&room, &candidates, &Preempted::default());
        prop_assert_eq!(chosen.is_some(), fits_without(&all));
        let Some(chosen) = chosen else { return Ok(()) };
        prop_assert!(chosen.is_sorted());
        prop_assert!(fits_without(&chosen));
        for spared in 0..chosen.len() {
            let mut fewer = chosen.clone();
            fewer.remove(spared);
            prop_assert!(!fits_without(&fewer), "{:?} without {}", chosen, chosen[spared]);
        }
    }
}

/// The same answer without the crate `placement`.
fn fits(node: &Node, usage: &NodeUsage, asked: &Asked, requirements: &Requirements) -> bool {
    let holds_core = |id: &u16| usage.dedicated().is_some_and(|held| held.of_core(*id) > 0);
    let free_cores = node.cores.keys().copied().filter(|id| !holds_core(id));
    let cores: Vec<_> = free_cores.take(asked.cores as usize).collect();
    let is_held = |name: &str, id: &str| {
        let device = state::dedicated::DeviceRef {
            vendor: "nvidia",
            device_type: "gpu",
            name,
            instance_id: id,
        };
        usage
            .dedicated()
            .is_some_and(|held| held.of_device(device) > 0)
    };
    let free_gpus = |name: &str| {
        let of_kind = DEVICES.iter().filter(|(kind, _)| *kind == name);
        of_kind.filter(|(kind, id)| !is_held(kind, id)).count() as u64
    };
    if cores.len() < asked.cores as usize
        || free_gpus("k80").max(free_gpus("t4")) < asked.gpus
        || (node.max_allocs > 0 && usage.alloc_count >= node.max_allocs)
    {
        return false;
    }
    let mut after = usage.total.plus(requirements.resources);
    after.cpu_mhz += cores_mhz(&cores);
    let asks = &requirements.ports;
    let statics: Vec<_> = asks.iter().filter_map(|ask| ask.static_port).collect();
    let dynamics = asks.len() - statics.len();
    let range = node.min_dynamic_port..=node.max_dynamic_port;
    let is_free = |port: &u16| !usage.ports.holds("127.0.0.1", *port);
    let free = range.filter(|port| is_free(port) && !statics.contains(port));
    after.exceeds(node.available()).is_none()
        && statics.iter().all(is_free)
        && free.count() >= dynamics
}
