//! Asks every node: what keeps the group off it, and how good it would be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{AllocId, AllocatedPort, JobKey, Node, NodeId, NodeStatus, Plan, Timestamp};
use placement::distinct::PropertyUse;
use placement::ports::check_static;
use placement::{
    Exhausted, Infeasible, Level, PortAsk, Requirements, VolumeAsks, VolumeWrites, assign_ports,
};
use rustc_hash::FxHashMap;
use state::{AllocView, PortUse, Snapshot};

use crate::cluster::Cluster;
use crate::explain::inquiry::{Inquiry, Question, new_allocs};
use crate::explain::obstacle::{DriverFault, Holder, Obstacle, Verdict};
use crate::explain::way::{self, Asker, Way};
use crate::preempt::Room;
use crate::rank::score::Parts;
use crate::rank::{Ask, Neighbour, Preferences, Search};
use model::Algorithm;

/// What is said of nodes without a volume that the group claims.
const TIED_ELSEWHERE: &str = "the group has claimed sticky volumes of other nodes";

/// What one node answered.
pub(super) struct Answer<'a> {
    pub(super) node: &'a Node,
    /// Empty: it could take one.
    pub(super) obstacles: Vec<Obstacle>,
    /// Whether others would make way; `None`: there is room, it is not about room alone, or nobody of
    /// another job is there.
    pub(super) way: Option<Way>,
    /// How good it would be, once others have made way if they have to; `None`: it cannot, or the job
    /// is to be on every node anyway.
    pub(super) parts: Option<Parts>,
    /// How many of the group it holds when all is done.
    pub(super) holds: u32,
}

/// An allocation of the job that lives when all is done.
#[derive(Clone, Debug)]
struct Live {
    node_id: NodeId,
    name: String,
    is_of_group: bool,
    /// It does not stay with the one that is asked about.
    parts: bool,
    /// What is to be distinct may be shared with it.
    may_share: bool,
}

impl Live {
    /// Tells whether what is to be distinct at `level` is kept from where it is.
    fn keeps_off(&self, level: Level) -> bool {
        (self.is_of_group || level == Level::Job) && !self.may_share
    }
}

/// From whom the allocation that is asked about is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepsApart {
    /// From everybody.
    Everybody,
    /// Only from those that may stay with it.
    WhoMayStay,
}

/// How nodes are asked.
#[derive(Clone, Copy)]
pub(super) struct Asked<'c> {
    pub(super) algorithm: Algorithm,
    pub(super) asker: &'c Asker,
    pub(super) keeps_apart: KeepsApart,
    pub(super) now: Timestamp,
}

/// Returns the cluster as `plan` leaves it, but for what the inquiry takes out.
pub(super) fn cluster<'a>(
    snapshot: &'a Snapshot,
    plan: &Plan,
    inquiry: &Inquiry<'a>,
    seed: u64,
) -> Cluster<'a> {
    let mut cluster = Cluster::new(snapshot, seed);
    let gone = gone(plan, inquiry);
    for view in gone.iter().filter_map(|id| snapshot.alloc(*id)) {
        if !view.is_terminal() {
            cluster.release(view.alloc.node_id, &view.alloc.resources);
        }
    }
    for alloc in new_allocs(snapshot, plan).filter(|alloc| Some(alloc.id) != inquiry.left_out) {
        if let Some(position) = cluster.position(alloc.node_id) {
            cluster.hold(position, &alloc.resources);
            if snapshot.has_volumes() {
                cluster.add_writes(position, VolumeWrites::of(snapshot, alloc));
            }
        }
    }
    cluster
}

fn gone(plan: &Plan, inquiry: &Inquiry<'_>) -> BTreeSet<AllocId> {
    let stopped = plan.stops.values().flatten().map(|stop| stop.alloc_id);
    let released = inquiry.released.iter().map(|view| view.alloc.id);
    stopped
        .chain(way::evicted(plan, inquiry))
        .chain(released)
        .collect()
}

/// Asks for one group.
pub(super) struct Survey<'a, 'c> {
    snapshot: &'a Snapshot,
    key: JobKey,
    search: Search<'a, 'c>,
    requirements: &'a Requirements,
    is_everywhere: bool,
    penalised: Vec<NodeId>,
    /// Node → how long until one that has failed there is placed again, if ever.
    failed: BTreeMap<NodeId, Option<Duration>>,
    live: FxHashMap<NodeId, Vec<Live>>,
    properties: Vec<PropertyUse<'a>>,
    gone: BTreeSet<AllocId>,
    /// Node, address and port → the plan's allocation that holds it.
    planned_ports: FxHashMap<(NodeId, String, u16), Holder>,
    dynamic_ports: Vec<PortAsk>,
    name_index: u32,
    asker: &'c Asker,
}

impl<'a, 'c> Survey<'a, 'c> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        plan: &Plan,
        inquiry: &Inquiry<'a>,
        requirements: &'a Requirements,
        asked: Asked<'c>,
        cluster: &'c mut Cluster<'a>,
    ) -> Self {
        let gone = gone(plan, inquiry);
        let (group, generations) = (inquiry.group, inquiry.generations);
        let key = inquiry.job.value.key();
        let stay = snapshot.allocs_by_job(&key);
        let stay = stay.filter(|view| !view.is_terminal() && !gone.contains(&view.alloc.id));
        let stay = stay.map(|view| (&*view.alloc, generations.of(view.alloc.id)));
        let new = new_allocs(snapshot, plan).filter(|alloc| Some(alloc.id) != inquiry.left_out);
        let new = new.map(|alloc| (alloc, generations.of_new(alloc)));
        let mut live = FxHashMap::<NodeId, Vec<Live>>::default();
        for (alloc, generation) in stay.chain(new) {
            let parts = inquiry.generation.parts_from(generation);
            live.entry(alloc.node_id).or_default().push(Live {
                node_id: alloc.node_id,
                name: alloc.name(),
                is_of_group: *alloc.task_group == *group.name,
                parts,
                may_share: parts && asked.keeps_apart == KeepsApart::WhoMayStay,
            });
        }
        let rules = requirements.distinct_properties.iter();
        let mut properties: Vec<_> = rules.map(PropertyUse::new).collect();
        for property in &mut properties {
            let level = property.level();
            let counted = live.values().flatten();
            for live in counted.filter(|live| live.keeps_off(level)) {
                if let Some(node) = snapshot.node(live.node_id) {
                    property.add(&node.value);
                }
            }
        }
        let mut planned_ports = FxHashMap::default();
        for alloc in new_allocs(snapshot, plan).filter(|alloc| Some(alloc.id) != inquiry.left_out) {
            for port in &alloc.resources.ports {
                let holder = Holder {
                    alloc_id: alloc.id,
                    job_id: alloc.job_id.to_string(),
                    is_own: true,
                };
                let held = (alloc.node_id, port.host_ip.clone(), port.value);
                planned_ports.insert(held, holder);
            }
        }
        let ask = Ask {
            requirements,
            preferences: Preferences::new(&inquiry.job.value, group),
            count: group.count,
            algorithm: asked.algorithm,
            live: live
                .values()
                .flatten()
                .map(|live| Neighbour {
                    node_id: live.node_id,
                    is_of_group: live.is_of_group,
                    parts: live.parts,
                    may_share: live.may_share,
                })
                .collect(),
            claim: None,
        };
        let failed = inquiry.failed.iter();
        let failed = failed.map(|(node, at)| (*node, at.map(|at| at.since(asked.now))));
        let dynamic = requirements.ports.iter();
        let dynamic = dynamic.filter(|ask| ask.static_port.is_none());
        Self {
            snapshot,
            key: key.clone(),
            search: Search::new(cluster, ask),
            requirements,
            is_everywhere: inquiry.question == Question::Everywhere,
            penalised: inquiry.penalised.clone(),
            failed: failed.collect(),
            live,
            properties,
            gone,
            planned_ports,
            dynamic_ports: dynamic.cloned().collect(),
            name_index: inquiry.name_index,
            asker: asked.asker,
        }
    }

    /// Asks every node that is known.
    pub(super) fn answers(&self) -> impl Iterator<Item = Answer<'a>> {
        let table = self.search.cluster.table;
        let nodes = (0..table.row_count())
            .filter_map(|position| Some((position, &table.node(position)?.value)));
        nodes.map(|(position, node)| self.answer(position, node))
    }

    fn answer(&self, position: usize, node: &'a Node) -> Answer<'a> {
        let obstacles = self.obstacles(position, node);
        let mut obstacles_left = obstacles.iter();
        let is_full = !obstacles.is_empty()
            && obstacles_left.all(|obstacle| obstacle.verdict() == Verdict::Exhausted);
        let (way, parts) = if is_full {
            self.ask_others(position, node)
        } else if obstacles.is_empty() {
            (None, self.search.parts(position))
        } else {
            (None, None)
        };
        let parts = parts.filter(|_| !self.is_everywhere);
        Answer {
            node,
            obstacles,
            way,
            parts: parts.map(|parts| Parts {
                is_penalised: self.penalised.contains(&node.id),
                ..parts
            }),
            holds: self.holds(node),
        }
    }

    /// Finds out whether others would make way on a full node, and how good it would be then.
    fn ask_others(&self, position: usize, node: &Node) -> (Option<Way>, Option<Parts>) {
        let usage = self.search.cluster.usage(position);
        let room = Room {
            node,
            usage: &usage,
            requirements: self.requirements,
        };
        let Some((way, victims)) = self.asker.ask(self.snapshot, &room) else {
            return (None, None);
        };
        let parts = match &way {
            Way::Open { .. } => self.search.parts_without(position, &room, &victims),
            _ => None,
        };
        (Some(way), parts)
    }

    /// Returns how many of the group live on the node when all is done.
    fn holds(&self, node: &Node) -> u32 {
        let live = self.live.get(&node.id).map_or(&[][..], Vec::as_slice);
        let holds = live.iter().filter(|live| live.is_of_group).count();
        u32::try_from(holds).unwrap_or(u32::MAX)
    }

    /// Returns everything that keeps the group off a node.
    fn obstacles(&self, position: usize, node: &Node) -> Vec<Obstacle> {
        let mut found = self.in_scope(node);
        found.extend(availability(node));
        self.facts(node, &mut found);
        self.neighbours(node, &mut found);
        if let Some(again_in) = self.failed.get(&node.id) {
            let again_in = *again_in;
            found.push(Obstacle::Failed { again_in });
        }
        self.volumes(position, node, &mut found);
        self.amounts(position, node, &mut found);
        if found.is_empty() {
            // Whatever else the search knows of.
            let row = self.search.cluster.row(position);
            if let Some(exhausted) = self.search.exhausted(position, row) {
                let dimension = exhausted.to_string();
                found.push(Obstacle::Exhausted { dimension });
            }
        }
        found
    }

    fn in_scope(&self, node: &Node) -> Vec<Obstacle> {
        let mut found = Vec::new();
        let scope = &self.requirements.scope;
        if !scope.contains_datacenter(node) {
            let datacenter = node.datacenter.clone();
            found.push(Obstacle::Datacenter { datacenter });
        }
        if !scope.contains_pool(node) {
            let pool = node.node_pool.clone();
            found.push(Obstacle::Pool { pool });
        }
        found
    }

    /// Looks at what the node says of itself.
    fn facts(&self, node: &Node, found: &mut Vec<Obstacle>) {
        for check in self.requirements.failed_checks(node) {
            let facts = check.facts(node).into_iter();
            found.push(Obstacle::Constraint {
                reason: check.reason().to_owned(),
                facts: facts.map(|fact| fact.map(Into::into)).collect(),
            });
        }
        for driver in self.requirements.missing_drivers(node) {
            let fault = match node.drivers.get(driver) {
                None => DriverFault::Absent,
                Some(info) if !info.detected => DriverFault::Undetected,
                Some(_) => DriverFault::Unhealthy,
            };
            let driver = driver.to_owned();
            found.push(Obstacle::Driver { driver, fault });
        }
        if let Some(reason) = self.requirements.network_fault() {
            let reason = reason.to_owned();
            found.push(Obstacle::Unfit { reason });
        }
        let missing = self.requirements.volumes.missing(node, self.name_index);
        let volumes: Vec<_> = missing.collect();
        if !volumes.is_empty() {
            found.push(Obstacle::Volumes { volumes });
        }
        let shared = self.requirements.check_shared(node).err();
        let unique = self.requirements.check_unique(node).err();
        let belongings = self.requirements.missing_belongings(node);
        for fault in shared.into_iter().chain(unique).chain(belongings) {
            let reason = fault.reason();
            // Whatever else the checks know of; of devices is told with what others hold of them.
            let is_known = matches!(
                fault,
                Infeasible::Constraint(_) | Infeasible::Drivers | Infeasible::Devices(_)
            ) || found.iter().any(|obstacle| obstacle.reason() == reason);
            if !is_known {
                let reason = reason.to_owned();
                found.push(Obstacle::Unfit { reason });
            }
        }
    }

    /// Looks at where the job's other allocations are.
    fn neighbours(&self, node: &Node, found: &mut Vec<Obstacle>) {
        let distinct_hosts = self.requirements.distinct_hosts;
        if let Some(distinct) = distinct_hosts.filter(|_| !self.is_everywhere) {
            let here = self.live.get(&node.id).into_iter().flatten();
            let counted = here.filter(|live| live.keeps_off(distinct.level));
            let others: Vec<_> = counted.map(|live| live.name.clone()).collect();
            if !others.is_empty() {
                found.push(Obstacle::DistinctHosts { others });
            }
        }
        // One that is there already is not asked whether there may be another.
        let is_there = self.is_everywhere && self.holds(node) > 0;
        for property in self.properties.iter().filter(|_| !is_there) {
            if let Err(reason) = property.check(node) {
                let is_missing = property.is_missing(node);
                found.push(Obstacle::DistinctProperty { reason, is_missing });
            }
        }
    }

    /// Looks at who else uses the volumes, and whether claims tie the group elsewhere.
    fn volumes(&self, position: usize, node: &Node, found: &mut Vec<Obstacle>) {
        let volumes = &self.requirements.volumes;
        if !volumes.differ_by_alloc() && self.search.volume_is_taken(position) {
            let reason = VolumeAsks::CONFLICT.to_owned();
            found.push(Obstacle::Unfit { reason });
        }
        let is_tied_elsewhere = || {
            let ties = self.search.ties();
            ties.is_some_and(|nodes| !nodes.contains(&node.id))
        };
        if !self.is_everywhere && is_tied_elsewhere() {
            let reason = TIED_ELSEWHERE.to_owned();
            found.push(Obstacle::Unfit { reason });
        }
    }

    /// Looks at amounts and ports.
    fn amounts(&self, position: usize, node: &Node, found: &mut Vec<Obstacle>) {
        let cluster = &self.search.cluster;
        let mut asked = self.requirements.resources;
        if !self.requirements.exclusive.is_empty() {
            let exclusive = &self.requirements.exclusive;
            let (given, short) = exclusive.assign_what_there_is(node, &cluster.holding(position));
            asked.cpu_mhz = asked.cpu_mhz.saturating_add(given.cpu_mhz);
            if short.cores > 0 {
                found.push(Obstacle::Amount {
                    dimension: Exhausted::CORES,
                    unit: "cores",
                    missing: short.cores,
                    asked: exclusive.cores(),
                    available: u64::try_from(node.cores.len()).unwrap_or(u64::MAX),
                    by_cores: false,
                });
            }
            if !short.devices.is_empty() {
                found.push(Obstacle::Devices {
                    short: short.devices,
                    is_held: exclusive.has_devices(node),
                });
            }
        }
        let free_allocs = cluster.free_allocs(position);
        if free_allocs < 1 {
            found.push(Obstacle::Allocations {
                missing: free_allocs.abs_diff(1),
                max: node.max_allocs,
            });
        }
        let after = cluster.used(position).plus(asked).dimensions();
        let dimensions = after.into_iter().zip(node.available().dimensions());
        for ((after, available), asked) in dimensions.zip(asked.dimensions()) {
            let missing = after.amount.saturating_sub(available.amount);
            if missing > 0 {
                found.push(Obstacle::Amount {
                    dimension: after.name,
                    unit: after.unit,
                    missing,
                    asked: asked.amount,
                    available: available.amount,
                    // Of cpu, a group with cores asks for what those have.
                    by_cores: after.name == "cpu" && self.requirements.exclusive.cores() > 0,
                });
            }
        }
        self.ports(position, node, found);
    }

    fn ports(&self, position: usize, node: &Node, found: &mut Vec<Obstacle>) {
        let held = self.search.cluster.ports(position);
        let mut is_each_free = true;
        for ask in &self.requirements.ports {
            let Some(port) = ask.static_port else {
                continue;
            };
            let answer = check_static(node, held, std::slice::from_ref(ask));
            let Err(Exhausted::PortCollision { .. }) = answer else {
                continue;
            };
            is_each_free = false;
            // Somebody may give it up on one of these.
            let mut addresses = ask.addresses_on(node).iter();
            let held = addresses.find(|address| !node.is_port_reserved(address, port));
            let holder = held.and_then(|address| self.holder(node.id, address, port));
            found.push(Obstacle::StaticPort {
                label: ask.label.clone(),
                port,
                holder,
            });
        }
        // Each alone would find an address, and not all of them do.
        let nobody = PortUse::default();
        let together = check_static(node, &nobody, &self.requirements.ports);
        if let (true, Err(Exhausted::PortCollision { label, port })) = (is_each_free, together) {
            found.push(Obstacle::SamePort { label, port });
        }
        if let Some(missing) = self.missing_dynamic_ports(position, node) {
            found.push(Obstacle::DynamicPorts { missing });
        }
    }

    fn holder(&self, node_id: NodeId, address: &str, port: u16) -> Option<Holder> {
        let holds = |view: &&AllocView| {
            let ports = &view.alloc.resources.ports;
            !view.is_terminal()
                && !self.gone.contains(&view.alloc.id)
                && ports
                    .iter()
                    .any(|held| held.value == port && held.host_ip == address)
        };
        let holder = self.snapshot.allocs_by_node(node_id).find(holds);
        let stored = holder.map(|view| Holder {
            alloc_id: view.alloc.id,
            job_id: view.alloc.job_id.to_string(),
            is_own: view.alloc.job_key() == self.key,
        });
        let planned = (node_id, address.to_owned(), port);
        stored.or_else(|| self.planned_ports.get(&planned).cloned())
    }

    fn missing_dynamic_ports(&self, position: usize, node: &Node) -> Option<u32> {
        let asks = &self.dynamic_ports;
        if asks.is_empty() {
            return None;
        }
        // In order instead of at random: the same question has the same answer.
        let all = &self.requirements.ports;
        if assign_ports(node, self.search.cluster.ports(position), all, |_| 0).is_ok() {
            return None;
        }
        let mut held = self.search.cluster.ports(position).clone();
        for ask in &self.requirements.ports {
            let Some(value) = ask.static_port else {
                continue;
            };
            let fixed = ask.addresses_on(node).iter().map(|address| AllocatedPort {
                value,
                host_ip: address.clone(),
                ..AllocatedPort::default()
            });
            held.add(&fixed.collect::<Vec<_>>());
        }
        let Err(Exhausted::DynamicPorts) = assign_ports(node, &held, asks, |_| 0) else {
            return None;
        };
        let addresses: Vec<_> = asks.iter().flat_map(|ask| ask.addresses_on(node)).collect();
        let is_free = |port: &u16| {
            let mut addresses = addresses.iter();
            addresses.any(|address| {
                !held.holds(address, *port) && !node.is_port_reserved(address, *port)
            })
        };
        let range = node.min_dynamic_port..=node.max_dynamic_port;
        let free = range.filter(is_free);
        let missing = asks.len().saturating_sub(free.count()).max(1);
        u32::try_from(missing).ok()
    }
}

/// Looks at whether the node takes anything.
fn availability(node: &Node) -> Vec<Obstacle> {
    let mut found = Vec::new();
    if node.status != NodeStatus::Ready {
        found.push(Obstacle::Status(node.status));
    }
    if node.eligibility == model::NodeEligibility::Ineligible {
        found.push(Obstacle::Ineligible);
    }
    if found.is_empty() && !node.is_schedulable() {
        found.push(Obstacle::Closed);
    }
    found
}
