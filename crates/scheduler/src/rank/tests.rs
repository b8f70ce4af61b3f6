//! The search against a slow one that looks at everything anew, on random clusters and jobs.
//!
//! The slow one shares the arithmetic of a fit and of affinities, which have tests of their own; it
//! counts allocations, shares, ports, cores and devices from lists. A failure names its seed.

use std::collections::{BTreeMap, BTreeSet};

use model::job::{DeviceRequest, Network, Port};
use model::node::{DeviceInstance, HostNetwork, NodeDevice};
use model::{
    Affinity, AllocatedCores, AllocatedDevice, AllocatedPort, AllocatedResources,
    ComparableResources, Constraint, EvalId, Job, Node, NodeEligibility, NodeId, Operator, Spread,
    SpreadTarget,
};
use placement::{Feasibility, Level, Requirements, Target};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use state::{AllocView, Change, Entity, Key, Snapshot, State};
use test_kit::builders;

use crate::cluster::Cluster;
use crate::rank::ask::{AllocAsk, Ask, JobAllocation};
use crate::rank::preferences::Preferences;
use crate::rank::score::{NOTHING, anti_affinity, fit};
use crate::rank::search::Search;
use crate::run_rng::RunRng;
use crate::selection::Selection;
use model::Algorithm;

/// Random cases; `KAFILA_CASES` asks for more.
const CASES: u64 = 1_000;
const STEPS: u32 = 25;
const STATIC_PORT: u16 = 8_080;
/// Those of the host network `public`.
const ADDRESSES: [&str; 2] = ["203.0.113.1", "203.0.113.2"];

/// One allocation, as the slow search knows it.
#[derive(Clone)]
struct PlacedAlloc {
    node_id: NodeId,
    is_of_job: bool,
    is_of_group: bool,
    /// A replacement may share distinct values with it.
    is_alternative: bool,
    may_share: bool,
    resources: AllocatedResources,
}

/// A random cluster and job, with the reference result: a slow search through all nodes.
struct Reference {
    rng: StdRng,
    nodes: Vec<Node>,
    job: Job,
    algorithm: Algorithm,
    /// Allocations in the order of their placement.
    placed: Vec<PlacedAlloc>,
    snapshot: Snapshot,
}

impl Reference {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let nodes = nodes(&mut rng);
        let job = job(&mut rng);
        let algorithm = if rng.random_range(0..4) == 0 {
            Algorithm::Spread
        } else {
            Algorithm::Binpack
        };
        let mut reference = Self {
            rng,
            nodes,
            job,
            algorithm,
            placed: Vec::new(),
            snapshot: Snapshot::default(),
        };
        reference.begin();
        reference
    }

    /// Puts nodes and a few allocations of this job and others into the snapshot.
    fn begin(&mut self) {
        let nodes = self.nodes.iter().map(|node| {
            let entity = Entity::Node(Box::new(node.clone()));
            (Key::Node(node.id), entity)
        });
        let mut objects: Vec<_> = nodes.collect();
        let others = builders::service("other", 1);
        for number in 0..self.rng.random_range(0..12) {
            let node = self.nodes[self.rng.random_range(0..self.nodes.len())].clone();
            let of_job = self.rng.random_range(0..3) > 0;
            let job = if of_job { &self.job } else { &others };
            let mut alloc = builders::allocation(number + 1, job, node.id);
            let is_of_group = of_job && self.rng.random();
            alloc.task_group = if is_of_group { "web" } else { "api" }.into();
            alloc.resources.total = small(&mut self.rng);
            if self.rng.random_range(0..4) == 0 {
                let port = [STATIC_PORT, node.min_dynamic_port][self.rng.random_range(0..2)];
                let address = ["127.0.0.1", ADDRESSES[0]][self.rng.random_range(0..2)];
                alloc.resources.ports = vec![port_of("x", port, address)];
            }
            if self.rng.random() {
                alloc.resources.cores = self.free_core(&node);
                alloc.resources.devices = self.free_device(&node);
            }
            self.placed.push(PlacedAlloc {
                node_id: node.id,
                is_of_job: of_job,
                is_of_group,
                is_alternative: of_job && number % 4 == 0,
                may_share: of_job && number % 8 == 0,
                resources: alloc.resources.clone(),
            });
            objects.push((Key::Alloc(alloc.id), Entity::Alloc(Box::new(alloc))));
        }
        let changes = objects.into_iter().map(|(key, entity)| Change::Put {
            key,
            entity,
            create_index: 1,
            modify_index: 1,
        });
        self.snapshot = State::from_list(1, changes).snapshot();
    }

    /// Returns the cores of an allocation that holds the last free core.
    fn free_core(&self, node: &Node) -> Vec<AllocatedCores> {
        let id = self.free_cores(node).pop();
        let cores = id.into_iter().map(|(id, _)| AllocatedCores {
            task: "x".into(),
            ids: vec![id],
        });
        cores.collect()
    }

    /// Returns the devices of an allocation that holds a free device, if there is one.
    fn free_device(&self, node: &Node) -> Vec<AllocatedDevice> {
        let mut kinds = node.devices.iter();
        let free = kinds.find_map(|kind| Some((kind, self.free_instances(node, kind).pop()?)));
        let devices = free.into_iter().map(|(kind, id)| AllocatedDevice {
            task: "x".into(),
            vendor: kind.vendor.clone(),
            device_type: kind.device_type.clone(),
            name: kind.name.clone(),
            instance_ids: vec![id],
        });
        devices.collect()
    }

    fn free_cores(&self, node: &Node) -> Vec<(u16, u32)> {
        let held = self.on(node.id).flat_map(|held| &held.resources.cores);
        let held: BTreeSet<_> = held.flat_map(|cores| &cores.ids).collect();
        let cores = node.cores.iter().filter(|(id, _)| !held.contains(id));
        cores.map(|(id, mhz)| (*id, *mhz)).collect()
    }

    fn free_instances(&self, node: &Node, kind: &NodeDevice) -> Vec<String> {
        let held = self.on(node.id).flat_map(|held| &held.resources.devices);
        let held: BTreeSet<_> = held
            .filter(|devices| devices.name == kind.name)
            .flat_map(|devices| &devices.instance_ids)
            .collect();
        let healthy = kind.instances.iter().filter(|instance| instance.healthy);
        healthy
            .map(|instance| instance.id.clone())
            .filter(|id| !held.contains(id))
            .collect()
    }

    /// Returns the cpu of one more allocation's cores and the score of its devices; `None`: the
    /// node lacks them.
    fn dedicated(&self, node: &Node) -> Option<(u64, Option<f64>)> {
        let wanted = &self.job.task_groups[0].tasks[0].resources;
        let free = self.free_cores(node);
        let cores = free.get(..wanted.cores as usize)?;
        let cpu_mhz = cores.iter().map(|(_, mhz)| u64::from(*mhz)).sum();
        let free: Vec<_> = node
            .devices
            .iter()
            .map(|kind| self.free_instances(node, kind).len())
            .collect();
        // Every kind for every request, those first that earlier requests like best.
        let mut ways: Vec<(Vec<f64>, Vec<usize>)> = vec![(Vec::new(), free)];
        for request in &wanted.devices {
            let liking = |kind: &NodeDevice| -> f64 {
                let affinities = request.affinities.iter();
                let matching = affinities.filter(|affinity| affinity.right == kind.name);
                matching.map(|affinity| f64::from(affinity.weight)).sum()
            };
            let mut more = Vec::new();
            for (liked, free) in ways {
                let mut kinds: Vec<_> = (0..free.len()).collect();
                kinds.sort_by(|left, right| {
                    liking(&node.devices[*right]).total_cmp(&liking(&node.devices[*left]))
                });
                for kind in kinds {
                    let mut free = free.clone();
                    let count = usize::try_from(request.count).unwrap();
                    if let Some(left) = free[kind].checked_sub(count) {
                        free[kind] = left;
                        let mut liked = liked.clone();
                        liked.push(liking(&node.devices[kind]));
                        more.push((liked, free));
                    }
                }
            }
            ways = more;
        }
        let (liked, _) = ways.first()?;
        let affinities = wanted.devices.iter().flat_map(|it| &it.affinities);
        let weight: f64 = affinities.map(|it| f64::from(it.weight).abs()).sum();
        let score = (weight > 0.0).then(|| liked.iter().sum::<f64>() / weight);
        Some((cpu_mhz, score))
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes.iter().find(|node| node.id == id).unwrap()
    }

    fn on(&self, id: NodeId) -> impl Iterator<Item = &PlacedAlloc> {
        self.placed.iter().filter(move |held| held.node_id == id)
    }

    /// Tells whether `node` can take one more, asking it everything.
    fn admits(&self, requirements: &Requirements, node: &Node) -> bool {
        let group = &self.job.task_groups[0];
        if !node.is_schedulable()
            || !requirements.scope.contains(node)
            || Feasibility::new(requirements).check(node).is_err()
        {
            return false;
        }
        let Some((cpu_mhz, _)) = self.dedicated(node) else {
            return false;
        };
        if node.max_allocs > 0 && self.on(node.id).count() >= node.max_allocs as usize {
            return false;
        }
        let mut used = self
            .on(node.id)
            .fold(group.ask(), |sum, held| sum.plus(held.resources.total));
        used.cpu_mhz += cpu_mhz;
        if used.exceeds(node.available()).is_some() || !self.has_ports(node) {
            return false;
        }
        if let Some(distinct) = requirements.distinct_hosts {
            let mut others = self.on(node.id).filter(|held| counts(distinct.level, held));
            if others.next().is_some() {
                return false;
            }
        }
        requirements.distinct_properties.iter().all(|rule| {
            let Some(value) = rule.target().resolve(node) else {
                return false;
            };
            let counted = self.placed.iter().filter(|held| {
                let other = rule.target().resolve(self.node(held.node_id));
                counts(rule.level, held) && other.as_ref() == Some(&value)
            });
            counted.count() < rule.allowed().unwrap() as usize
        })
    }

    /// The static port is not of the dynamic range, and there is at most one of each kind.
    fn has_ports(&self, node: &Node) -> bool {
        let held = self.on(node.id).flat_map(|held| &held.resources.ports);
        let held: BTreeSet<_> = held.map(|port| (&*port.host_ip, port.value)).collect();
        let networks = self.job.task_groups[0].networks.iter();
        let mut asks = networks.flat_map(|network| &network.ports);
        asks.all(|ask| {
            let wanted: Vec<u16> = match ask.static_port {
                Some(port) => vec![port],
                None => (node.min_dynamic_port..=node.max_dynamic_port).collect(),
            };
            let mut addresses = node.addresses(&ask.host_network).unwrap().iter();
            addresses.any(|address| {
                wanted.iter().any(|port| {
                    let is_held = held
                        .iter()
                        .any(|(on, held)| held == port && (on == address || !node.has_address(on)));
                    !is_held && !node.is_port_reserved(address, *port)
                })
            })
        })
    }

    /// Returns the score of `node` with its lot, as scores are compared.
    fn score(&self, node: &Node, is_penalised: bool, lot: f64) -> f64 {
        let group = &self.job.task_groups[0];
        let preferences = Preferences::new(&self.job, group);
        let (cpu_mhz, devices) = self.dedicated(node).unwrap();
        let mut after = self
            .on(node.id)
            .fold(group.ask(), |sum, held| sum.plus(held.resources.total));
        after.cpu_mhz += cpu_mhz;
        let collisions = self.on(node.id).filter(|held| held.is_of_group).count();
        let mut parts = vec![fit(self.algorithm, node.available(), after)];
        parts.extend(anti_affinity(
            u32::try_from(collisions).unwrap(),
            group.count,
        ));
        if preferences.has_affinities() {
            parts.push(preferences.affinity(node));
        }
        parts.extend(devices);
        let spread = self.spread(node);
        // A lot is worth its part of the mean before others weigh in.
        let lot = lot * Selection::FIRST.near_tie * count(&parts);
        if spread.abs() >= NOTHING {
            parts.push(spread);
        }
        if is_penalised {
            parts.push(-1.0);
        }
        let sum = parts.iter().sum::<f64>() + lot;
        (sum / count(&parts)).max(0.0) + sum.min(0.0)
    }

    fn spread(&self, node: &Node) -> f64 {
        let group = &self.job.task_groups[0];
        let own: BTreeSet<_> = group
            .spreads
            .iter()
            .map(|spread| &spread.attribute)
            .collect();
        let of_job = self.job.spreads.iter();
        let spreads: Vec<_> = of_job
            .filter(|spread| !own.contains(&spread.attribute))
            .chain(&group.spreads)
            .filter(|spread| spread.weight > 0)
            .collect();
        let weights: f64 = spreads.iter().map(|spread| f64::from(spread.weight)).sum();
        let boosts = spreads.iter().map(|spread| {
            let weight = f64::from(spread.weight) / weights;
            let target = Target::parse(&spread.attribute);
            let value_on = |node: &Node| target.resolve(node).map(|value| value.to_string());
            let held = self.placed.iter();
            let of_group = held.filter(|held| held.is_of_group && !held.is_alternative);
            let mut used = BTreeMap::<String, f64>::new();
            for value in of_group.filter_map(|held| value_on(self.node(held.node_id))) {
                *used.entry(value).or_default() += 1.0;
            }
            let Some(value) = value_on(node) else {
                return -1.0;
            };
            if spread.targets.is_empty() {
                weight * even(&used, &value)
            } else {
                share(spread, f64::from(group.count), weight, &used, &value)
            }
        });
        let boosts = boosts.inspect(|boost| assert!((-1.0..=1.0).contains(boost), "{boost}"));
        boosts.sum()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a handful of scorers")]
fn count(parts: &[f64]) -> f64 {
    parts.len() as f64
}

fn even(used: &BTreeMap<String, f64>, value: &str) -> f64 {
    let min = used.values().copied().fold(f64::INFINITY, f64::min);
    let max = used.values().copied().fold(0.0, f64::max);
    match used.get(value).copied() {
        _ if used.is_empty() => 0.0,
        None => 1.0,
        Some(used) if used > min => -bounded((used - min) / min),
        Some(_) if min == max => -1.0,
        Some(_) => bounded((max - min) / min),
    }
}

fn bounded(distance: f64) -> f64 {
    let beyond = 1.0 - 1.0 / (4.0 * distance);
    if distance > 0.5 { beyond } else { distance }
}

fn share(
    spread: &Spread,
    count: f64,
    weight: f64,
    used: &BTreeMap<String, f64>,
    value: &str,
) -> f64 {
    let named: BTreeMap<_, _> = spread
        .targets
        .iter()
        .map(|target| {
            (
                target.value.as_str(),
                f64::from(target.percent) / 100.0 * count,
            )
        })
        .collect();
    let percents = spread.targets.iter().filter(|target| target.value != "*");
    let left = 100.0
        - percents
            .map(|target| f64::from(target.percent))
            .sum::<f64>();
    let rest = (left > 0.0 && left < 100.0).then_some(left / 100.0 * count);
    let others = named.get("*").copied().or(rest);
    let unnamed = used
        .iter()
        .filter(|(name, _)| !named.contains_key(name.as_str()) || *name == "*");
    let of_others: f64 = unnamed.map(|(_, used)| used).sum();
    let boost = |share: f64, used: f64| {
        let over = used + 1.0 - share;
        if over > 0.0 {
            -bounded(over / share.max(1.0)) * weight
        } else {
            -over / share * weight
        }
    };
    let mut actual = BTreeMap::new();
    for (name, share) in named.iter().filter(|(name, _)| **name != "*") {
        actual.insert(*name, (*share, used.get(*name).copied().unwrap_or(0.0)));
    }
    if let Some(share) = others {
        actual.insert("*", (share, of_others));
    }
    let key = if actual.contains_key(value) && value != "*" {
        value
    } else {
        "*"
    };
    let Some((share, used)) = actual.get(key).copied() else {
        return -1.0;
    };
    if share > 0.0 {
        boost(share, used)
    } else {
        -1.0
    }
}

fn counts(level: Level, held: &PlacedAlloc) -> bool {
    let is_looked_at = held.is_of_group || level == Level::Job && held.is_of_job;
    is_looked_at && !held.may_share
}

fn small(rng: &mut StdRng) -> ComparableResources {
    ComparableResources {
        cpu_mhz: rng.random_range(50..400),
        memory_mib: rng.random_range(50..400),
        disk_mib: rng.random_range(50..400),
    }
}

fn port_of(label: &str, value: u16, address: &str) -> AllocatedPort {
    AllocatedPort {
        label: label.into(),
        value,
        to: value,
        host_ip: address.into(),
        ignore_collision: false,
        task: String::new(),
    }
}

fn nodes(rng: &mut StdRng) -> Vec<Node> {
    let count = rng.random_range(1..16);
    let racks = rng.random_range(1..11);
    let mut nodes = Vec::new();
    for number in 1..=count {
        let mut node = builders::node(number);
        node.datacenter = format!("dc{}", rng.random_range(1..4));
        node.resources.cpu_mhz = rng.random_range(200..3_000);
        node.resources.memory_mib = rng.random_range(200..3_000);
        node.resources.disk_mib = rng.random_range(200..6_000);
        node.reserved.memory_mib = rng.random_range(0..100);
        node.max_dynamic_port = node.min_dynamic_port + rng.random_range(0..4);
        if rng.random_range(0..5) > 0 {
            let rack = format!("r{}", rng.random_range(0..racks));
            node.meta.insert("rack".into(), rack);
        }
        let host = format!("h{number}");
        node.attributes.insert("unique.hostname".into(), host);
        if rng.random_range(0..8) == 0 {
            node.eligibility = NodeEligibility::Ineligible;
        }
        if rng.random_range(0..8) == 0 {
            node.drivers.clear();
        }
        if rng.random_range(0..8) == 0 {
            node.reserved_ports = vec![STATIC_PORT];
        }
        if rng.random_range(0..3) > 0 {
            let public = HostNetwork {
                addresses: ADDRESSES.map(str::to_owned).to_vec(),
                reserved_ports: Vec::new(),
            };
            node.host_networks.insert("public".into(), public);
        }
        if rng.random_range(0..4) == 0 {
            node.max_allocs = rng.random_range(1..6);
        }
        for id in 0..rng.random_range(0..5) {
            node.cores.insert(id * 2, rng.random_range(50..400));
        }
        for name in ["k80", "t4"] {
            if rng.random_range(0..3) > 0 {
                node.devices.push(device(rng, name));
            }
        }
        // Stored classes may be stale, so nothing may be taken from them.
        nodes.push(node);
    }
    nodes
}

fn device(rng: &mut StdRng, name: &str) -> NodeDevice {
    let ids = 0..rng.random_range(0..4);
    let instances = ids.map(|id| DeviceInstance {
        id: id.to_string(),
        healthy: rng.random_range(0..5) > 0,
    });
    NodeDevice {
        vendor: "nvidia".into(),
        device_type: "gpu".into(),
        name: name.into(),
        instances: instances.collect(),
        ..NodeDevice::default()
    }
}

fn device_request(rng: &mut StdRng) -> DeviceRequest {
    let liked = ["k80", "t4", "none"][rng.random_range(0..3)];
    let affinity = Affinity {
        left: "${device.model}".into(),
        operator: Operator::Equal,
        right: liked.into(),
        weight: [-100, 50, 100][rng.random_range(0..3)],
    };
    DeviceRequest {
        name: ["gpu", "nvidia/gpu"][rng.random_range(0..2)].into(),
        count: rng.random_range(1..3),
        constraints: Vec::new(),
        affinities: Vec::from_iter(rng.random::<bool>().then_some(affinity)),
    }
}

fn job(rng: &mut StdRng) -> Job {
    let mut job = builders::service("web", rng.random_range(1..12));
    let resources = small(rng);
    let group = &mut job.task_groups[0];
    group.tasks[0].resources.cpu_mhz = u32::try_from(resources.cpu_mhz).unwrap();
    group.tasks[0].resources.memory_mib = u32::try_from(resources.memory_mib).unwrap();
    group.ephemeral_disk.size_mib = resources.disk_mib;
    if rng.random_range(0..4) == 0 {
        group.tasks[0].resources.cpu_mhz = 0;
        group.tasks[0].resources.cores = rng.random_range(1..3);
    }
    if rng.random_range(0..4) == 0 {
        let count = rng.random_range(1..3);
        group.tasks[0].resources.devices = (0..count).map(|_| device_request(rng)).collect();
    }
    if rng.random_range(0..3) == 0 {
        let host_network = ["default", "public"][rng.random_range(0..2)];
        let ports = [Some(STATIC_PORT), None]
            .into_iter()
            .filter(|_| rng.random());
        let port = |static_port: Option<u16>| Port {
            label: format!("{static_port:?}"),
            static_port,
            to: None,
            host_network: host_network.into(),
            ignore_collision: false,
        };
        group.networks = vec![Network {
            mode: "host".into(),
            ports: ports.map(port).collect(),
            ..Network::default()
        }];
    }
    for _ in 0..rng.random_range(0..3) {
        let constraint = constraint(rng);
        if rng.random() {
            job.constraints.push(constraint);
        } else {
            job.task_groups[0].constraints.push(constraint);
        }
    }
    for _ in 0..rng.random_range(0..3) {
        let (left, right) = fact(rng);
        let affinity = Affinity {
            left,
            operator: Operator::Equal,
            right,
            weight: [-100, -30, 10, 50, 100][rng.random_range(0..5)],
        };
        match rng.random_range(0..3) {
            0 => job.affinities.push(affinity),
            1 => job.task_groups[0].affinities.push(affinity),
            _ => job.task_groups[0].tasks[0].affinities.push(affinity),
        }
    }
    for _ in 0..rng.random_range(0..4) {
        let spread = spread(rng);
        if rng.random() {
            job.spreads.push(spread);
        } else {
            job.task_groups[0].spreads.push(spread);
        }
    }
    job
}

fn fact(rng: &mut StdRng) -> (String, String) {
    let number = rng.random_range(0..4);
    match rng.random_range(0..4) {
        0 => ("${node.datacenter}".into(), format!("dc{number}")),
        1 => ("${attr.unique.hostname}".into(), format!("h{number}")),
        _ => ("${meta.rack}".into(), format!("r{number}")),
    }
}

fn constraint(rng: &mut StdRng) -> Constraint {
    let (left, right) = fact(rng);
    let (operator, right) = match rng.random_range(0..4) {
        0 => (Operator::DistinctHosts, String::new()),
        1 => (
            Operator::DistinctProperty,
            rng.random_range(1..4).to_string(),
        ),
        _ => (Operator::NotEqual, right),
    };
    Constraint {
        left,
        operator,
        right,
    }
}

fn spread(rng: &mut StdRng) -> Spread {
    let (attribute, value) = fact(rng);
    let prefix = value.trim_end_matches(char::is_numeric).to_owned();
    let mut left = 100;
    let mut targets = Vec::new();
    for number in 0..rng.random_range(0..4) {
        let percent = rng.random_range(0..=left);
        left -= percent;
        let is_any = number == 2 && rng.random();
        let value = if is_any {
            "*".into()
        } else {
            format!("{prefix}{number}")
        };
        targets.push(SpreadTarget { value, percent });
    }
    Spread {
        attribute,
        weight: [0, 10, 50, 100][rng.random_range(0..4)],
        targets,
    }
}

/// Plays one random job on one random cluster; returns how many nodes were found.
fn play(seed: u64, selection: Selection) -> u32 {
    let mut reference = Reference::new(seed);
    let job = reference.job.clone();
    let snapshot = reference.snapshot.clone();
    let group = &job.task_groups[0];
    let requirements = Requirements::new(&job, group);
    let of_job = reference.placed.iter().filter(|held| held.is_of_job);
    let ask = Ask {
        requirements: &requirements,
        preferences: Preferences::new(&job, group),
        count: group.count,
        algorithm: reference.algorithm,
        live: of_job
            .map(|held| JobAllocation {
                node_id: held.node_id,
                is_of_group: held.is_of_group,
                is_alternative: held.is_alternative,
                may_share: held.may_share,
            })
            .collect(),
        preemptor: None,
    };
    let mut rng = RunRng::new(seed, EvalId::default(), 1).with_selection(selection);
    let mut cluster = Cluster::new(&snapshot, seed);
    let lots = cluster.clone();
    let mut search = Search::new(&mut cluster, ask);
    // No allocation of another generation is updated.
    let is_released = |view: &&AllocView| {
        let mut held = reference.placed.iter();
        *view.alloc.task_group == *group.name
            && held.any(|held| {
                let is_it =
                    held.node_id == view.alloc.node_id && held.resources == view.alloc.resources;
                is_it && held.is_of_group && !held.is_alternative
            })
    };
    let mut views: Vec<_> = snapshot
        .allocs_by_job(&job.key())
        .filter(is_released)
        .collect();
    let mut found_count = 0;
    for step in 0..STEPS {
        let seen = format!("seed {seed}, step {step}");
        // As an update does: its predecessor gives up its share first.
        let released = if reference.rng.random_range(0..3) == 0 {
            views.pop()
        } else {
            None
        };
        if let Some(view) = released {
            search.release(view);
            let same = |held: &PlacedAlloc| held.is_of_group && held.node_id == view.alloc.node_id;
            let gone = reference
                .placed
                .iter()
                .position(|held| same(held) && held.resources == view.alloc.resources);
            reference.placed.remove(gone.unwrap());
        }
        let mut alloc_ask = AllocAsk::default();
        for node in &reference.nodes {
            match reference.rng.random_range(0..20) {
                0 => alloc_ask.penalised.push(node.id),
                1 => alloc_ask.preferred = Some(node.id),
                _ => {}
            }
        }
        let candidates: Vec<_> = reference
            .nodes
            .iter()
            .filter(|node| reference.admits(&requirements, node))
            .map(|node| {
                let is_penalised = alloc_ask.penalised.contains(&node.id);
                let score = reference.score(node, is_penalised, lots.tie_breaker(node.id));
                let without_lot = reference.score(node, is_penalised, 0.0);
                (node.id, score, without_lot, is_penalised)
            })
            .collect();
        let Some(found) = search.find(&alloc_ask, &mut rng) else {
            assert!(candidates.is_empty(), "{seen}: {candidates:?} were missed");
            if let Some(view) = released {
                search.hold(view);
                reference.placed.push(PlacedAlloc {
                    node_id: view.alloc.node_id,
                    is_of_job: true,
                    is_of_group: true,
                    is_alternative: false,
                    may_share: false,
                    resources: view.alloc.resources.clone(),
                });
            }
            let metric = search.failure_metric();
            let counted = metric.nodes_filtered + metric.nodes_exhausted;
            assert_eq!(counted, metric.nodes_evaluated, "{seen}: {metric:?}");
            continue;
        };
        found_count += 1;
        let chosen = candidates.iter().find(|(id, ..)| *id == found.node_id);
        let Some((_, score, without_lot, is_penalised)) = chosen else {
            panic!("{seen}: {} cannot take it", found.node_id);
        };
        let preferred = alloc_ask
            .preferred
            .filter(|id| candidates.iter().any(|(node, ..)| node == id));
        if let Some(preferred) = preferred {
            assert_eq!(found.node_id, preferred, "{seen}");
        } else if selection.among > 1 {
            let others = candidates.iter().filter(|(.., is_penalised)| !is_penalised);
            let better = others.filter(|(_, other, ..)| other - score > 1e-9).count();
            assert!(
                better < selection.among as usize,
                "{seen}: {score} of {candidates:?}"
            );
        } else {
            let best = candidates.iter().map(|(_, score, ..)| *score);
            let best = best.fold(f64::MIN, f64::max);
            assert!(
                (best - score).abs() < 1e-9,
                "{seen}: {score} of {candidates:?}"
            );
            // Whatever the random numbers, no node better by more than a near-tie is passed over.
            let best = candidates.iter().map(|(_, _, score, _)| *score);
            let best = best.fold(f64::MIN, f64::max);
            // A near-tie of sums is as many times that of a mean as there are scorers with a lot.
            let scorers = if best < 0.0 { 4.0 } else { 1.0 };
            assert!(
                best - without_lot < Selection::FIRST.near_tie * scorers,
                "{seen}: {candidates:?}"
            );
        }
        let actual = found.metric.score_parts.unwrap();
        assert_eq!(actual.reschedule_penalty.is_some(), *is_penalised, "{seen}");
        let actual = f64::from(found.metric.score_per_mille) / 1_000.0;
        assert!((actual - without_lot).abs() <= 0.000_5, "{seen}: {actual}");
        for other in &found.metric.runners_up {
            assert_ne!(other.node_id, found.node_id, "{seen}");
        }
        let mut resources = AllocatedResources {
            total: requirements.resources,
            ports: found.assignment.ports,
            ..AllocatedResources::default()
        };
        let (cpu_mhz, _) = reference.dedicated(reference.node(found.node_id)).unwrap();
        assert_eq!(found.assignment.dedicated.cpu_mhz, cpu_mhz, "{seen}");
        found.assignment.dedicated.add_to(&mut resources);
        search.take(found.position, &resources);
        reference.placed.push(PlacedAlloc {
            node_id: found.node_id,
            is_of_job: true,
            is_of_group: true,
            is_alternative: false,
            may_share: false,
            resources,
        });
    }
    found_count
}

/// Plays random jobs on random clusters.
fn play_all(selection: Selection) {
    let asked = std::env::var("KAFILA_CASES").ok();
    let cases = asked.map_or(CASES, |text| text.parse().expect("a number of cases"));
    let found: u32 = (0..cases).map(|seed| play(seed, selection)).sum();
    let cases = u32::try_from(cases).unwrap();
    assert!(
        found > cases,
        "{found} nodes found in {cases} cases is no test"
    );
}

#[test]
fn the_search_agrees_with_the_slow_search() {
    play_all(Selection::FIRST);
}

#[test]
fn a_node_that_is_drawn_is_one_of_the_best_and_none_is_lost() {
    play_all(Selection {
        among: 3,
        ..Selection::FIRST
    });
}
