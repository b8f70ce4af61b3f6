//! Node checks: the blockers of every node for a group, and its score.

mod ports;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{AllocId, JobKey, Node, NodeId, NodeStatus, Plan, Timestamp};
use placement::distinct::PropertyUse;
use placement::{Exhausted, Infeasible, Level, PortAsk, Requirements, VolumeAsks};
use rustc_hash::FxHashMap;
use state::Snapshot;

use crate::cluster::Cluster;
use crate::explain::blocker::{DriverFault, Holder, PlacementBlocker, Verdict};
use crate::explain::preemption::{self, PreemptionOutcome, PreemptionProbe};
use crate::explain::probe::{Probe, Question, new_allocs};
use crate::preempt::node_fit::NodeFit;
use crate::rank::ask::{Ask, JobAllocation};
use crate::rank::preferences::Preferences;
use crate::rank::score::Parts;
use crate::rank::search::Search;
use crate::separation::Separation;
use model::Algorithm;

/// The reason of nodes without a volume that the group has claimed.
const TIED_ELSEWHERE: &str = "the group has claimed sticky volumes of other nodes";

/// The result of checking one node.
pub(super) struct Answer<'a> {
    pub(super) node: &'a Node,
    /// Empty: the node can take an allocation.
    pub(super) blockers: Vec<PlacementBlocker>,
    /// `None`: the node has room, lacks more than room, or has no allocations of other jobs.
    pub(super) preemption: Option<PreemptionOutcome>,
    /// The score, after preemption if that is needed; `None`: the node cannot take an allocation, or
    /// scores do not matter because the job runs on every node.
    pub(super) parts: Option<Parts>,
    /// The number of the group's allocations on it once the plan is applied.
    pub(super) holds: u32,
}

/// An allocation of the job that is live once the plan is applied.
#[derive(Clone, Debug)]
struct Live {
    node_id: NodeId,
    name: String,
    is_of_group: bool,
    /// Only one of it and the probed allocation survives the rollout.
    is_alternative: bool,
    /// Distinctness constraints do not count it.
    may_share: bool,
}

impl Live {
    /// Tells whether a distinctness constraint at `level` counts it.
    fn is_counted_at(&self, level: Level) -> bool {
        (self.is_of_group || level == Level::Job) && !self.may_share
    }
}

/// Options of checking nodes.
#[derive(Clone, Copy)]
pub(super) struct CheckOptions<'c> {
    pub(super) algorithm: Algorithm,
    pub(super) preemption_probe: &'c PreemptionProbe,
    pub(super) separation: Separation,
    pub(super) now: Timestamp,
}

/// Returns the cluster as `plan` leaves it, without the allocations that the probe leaves out.
pub(super) fn cluster<'a>(
    snapshot: &'a Snapshot,
    plan: &Plan,
    probe: &Probe<'a>,
    seed: u64,
) -> Cluster<'a> {
    let new = new_allocs(snapshot, plan).filter(|alloc| Some(alloc.id) != probe.left_out);
    Cluster::with_changes(snapshot, seed, gone(plan, probe), new)
}

fn gone(plan: &Plan, probe: &Probe<'_>) -> BTreeSet<AllocId> {
    let stopped = plan.stops.values().flatten().map(|stop| stop.alloc_id);
    let released = probe.released.iter().map(|view| view.alloc.id);
    stopped
        .chain(preemption::evicted(plan, probe))
        .chain(released)
        .collect()
}

/// Checks nodes for one group.
pub(super) struct NodeChecks<'a, 'c> {
    snapshot: &'a Snapshot,
    key: JobKey,
    search: Search<'a, 'c>,
    requirements: &'a Requirements,
    is_system: bool,
    penalised: Vec<NodeId>,
    /// Node with a failed allocation → the rest of the reschedule delay; `None`: no attempts are left.
    failed: BTreeMap<NodeId, Option<Duration>>,
    live: FxHashMap<NodeId, Vec<Live>>,
    properties: Vec<PropertyUse<'a>>,
    gone: BTreeSet<AllocId>,
    /// Node, address and port → the plan's allocation that holds it.
    planned_ports: FxHashMap<(NodeId, String, u16), Holder>,
    dynamic_ports: Vec<PortAsk>,
    name_index: u32,
    preemption_probe: &'c PreemptionProbe,
}

impl<'a, 'c> NodeChecks<'a, 'c> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        plan: &Plan,
        probe: &Probe<'a>,
        requirements: &'a Requirements,
        asked: CheckOptions<'c>,
        cluster: &'c mut Cluster<'a>,
    ) -> Self {
        let gone = gone(plan, probe);
        let (group, generations) = (probe.group, probe.generations);
        let key = probe.job.value.key();
        let stay = snapshot.allocs_by_job(&key);
        let stay = stay.filter(|view| !view.is_terminal() && !gone.contains(&view.alloc.id));
        let stay = stay.map(|view| (&*view.alloc, generations.of(view.alloc.id)));
        let new = new_allocs(snapshot, plan).filter(|alloc| Some(alloc.id) != probe.left_out);
        let new = new.map(|alloc| (alloc, generations.of_new(alloc)));
        let mut live = FxHashMap::<NodeId, Vec<Live>>::default();
        for (alloc, generation) in stay.chain(new) {
            let is_alternative = probe.generation.is_alternative_to(generation);
            live.entry(alloc.node_id).or_default().push(Live {
                node_id: alloc.node_id,
                name: alloc.name(),
                is_of_group: *alloc.task_group == *group.name,
                is_alternative,
                may_share: is_alternative && asked.separation == Separation::AllowOutgoing,
            });
        }
        let rules = requirements.distinct_properties.iter();
        let mut properties: Vec<_> = rules.map(PropertyUse::new).collect();
        for property in &mut properties {
            let level = property.level();
            let counted = live.values().flatten();
            for live in counted.filter(|live| live.is_counted_at(level)) {
                if let Some(node) = snapshot.node(live.node_id) {
                    property.add(&node.value);
                }
            }
        }
        let mut planned_ports = FxHashMap::default();
        for alloc in new_allocs(snapshot, plan).filter(|alloc| Some(alloc.id) != probe.left_out) {
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
            preferences: Preferences::new(&probe.job.value, group),
            count: group.count,
            algorithm: asked.algorithm,
            live: live
                .values()
                .flatten()
                .map(|live| JobAllocation {
                    node_id: live.node_id,
                    is_of_group: live.is_of_group,
                    is_alternative: live.is_alternative,
                    may_share: live.may_share,
                })
                .collect(),
            preemptor: None,
        };
        let failed = probe.failed.iter();
        let failed = failed.map(|(node, at)| (*node, at.map(|at| at.since(asked.now))));
        let dynamic = requirements.ports.iter();
        let dynamic = dynamic.filter(|ask| ask.static_port.is_none());
        Self {
            snapshot,
            key: key.clone(),
            search: Search::new(cluster, ask),
            requirements,
            is_system: probe.question == Question::Everywhere,
            penalised: probe.penalised.clone(),
            failed: failed.collect(),
            live,
            properties,
            gone,
            planned_ports,
            dynamic_ports: dynamic.cloned().collect(),
            name_index: probe.name_index,
            preemption_probe: asked.preemption_probe,
        }
    }

    /// Checks every node.
    pub(super) fn answers(&self) -> impl Iterator<Item = Answer<'a>> {
        let table = self.search.cluster.table;
        let nodes = (0..table.row_count())
            .filter_map(|position| Some((position, &table.node(position)?.value)));
        nodes.map(|(position, node)| self.answer(position, node))
    }

    fn answer(&self, position: usize, node: &'a Node) -> Answer<'a> {
        let blockers = self.blockers(position, node);
        let mut blockers_left = blockers.iter();
        let is_full = !blockers.is_empty()
            && blockers_left.all(|blocker| blocker.verdict() == Verdict::Exhausted);
        let (preemption, parts) = if is_full {
            self.check_preemption(position, node)
        } else if blockers.is_empty() {
            (None, self.search.parts(position))
        } else {
            (None, None)
        };
        let parts = parts.filter(|_| !self.is_system);
        Answer {
            node,
            blockers,
            preemption,
            parts: parts.map(|parts| Parts {
                is_penalised: self.penalised.contains(&node.id),
                ..parts
            }),
            holds: self.holds(node),
        }
    }

    /// Evaluates preemption on a full node, with its score afterwards.
    fn check_preemption(
        &self,
        position: usize,
        node: &Node,
    ) -> (Option<PreemptionOutcome>, Option<Parts>) {
        let usage = self.search.cluster.usage(position);
        let room = NodeFit {
            node,
            usage: &usage,
            requirements: self.requirements,
        };
        let Some((preemption, victims)) = self.preemption_probe.check(self.snapshot, &room) else {
            return (None, None);
        };
        let parts = match &preemption {
            PreemptionOutcome::Possible { .. } => {
                self.search.parts_without(position, &room, &victims)
            }
            _ => None,
        };
        (Some(preemption), parts)
    }

    /// Returns the number of the group's allocations on the node once the plan is applied.
    fn holds(&self, node: &Node) -> u32 {
        let live = self.live.get(&node.id).map_or(&[][..], Vec::as_slice);
        let holds = live.iter().filter(|live| live.is_of_group).count();
        u32::try_from(holds).unwrap_or(u32::MAX)
    }

    /// Returns all blockers of a node.
    fn blockers(&self, position: usize, node: &Node) -> Vec<PlacementBlocker> {
        let mut found = self.in_scope(node);
        found.extend(availability(node));
        self.facts(node, &mut found);
        self.distinctness(node, &mut found);
        if let Some(again_in) = self.failed.get(&node.id) {
            let again_in = *again_in;
            found.push(PlacementBlocker::Failed { again_in });
        }
        self.volumes(position, node, &mut found);
        self.amounts(position, node, &mut found);
        if found.is_empty() {
            // The search may know of more.
            let row = self.search.cluster.row(position);
            if let Some(exhausted) = self.search.exhausted(position, row) {
                let dimension = exhausted.to_string();
                found.push(PlacementBlocker::Exhausted { dimension });
            }
        }
        found
    }

    fn in_scope(&self, node: &Node) -> Vec<PlacementBlocker> {
        let mut found = Vec::new();
        let scope = &self.requirements.scope;
        if !scope.contains_datacenter(node) {
            let datacenter = node.datacenter.clone();
            found.push(PlacementBlocker::Datacenter { datacenter });
        }
        if !scope.contains_pool(node) {
            let pool = node.node_pool.clone();
            found.push(PlacementBlocker::Pool { pool });
        }
        found
    }

    /// Checks the facts of the node.
    fn facts(&self, node: &Node, found: &mut Vec<PlacementBlocker>) {
        for check in self.requirements.failed_checks(node) {
            let facts = check.facts(node).into_iter();
            found.push(PlacementBlocker::Constraint {
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
            found.push(PlacementBlocker::Driver { driver, fault });
        }
        if let Some(reason) = self.requirements.network_fault(node) {
            let reason = reason.to_owned();
            found.push(PlacementBlocker::Unfit { reason });
        }
        let missing = self.requirements.volumes.missing(node, self.name_index);
        let volumes: Vec<_> = missing.collect();
        if !volumes.is_empty() {
            found.push(PlacementBlocker::Volumes { volumes });
        }
        let shared = self.requirements.check_shared(node).err();
        let unique = self.requirements.check_unique(node).err();
        let host_parts = self.requirements.missing_host_parts(node);
        for fault in shared.into_iter().chain(unique).chain(host_parts) {
            let reason = fault.reason();
            // Devices are reported with amounts, by the holdings of other allocations.
            let is_known = matches!(
                fault,
                Infeasible::Constraint(_) | Infeasible::Drivers | Infeasible::Devices(_)
            ) || found.iter().any(|blocker| blocker.reason() == reason);
            if !is_known {
                let reason = reason.to_owned();
                found.push(PlacementBlocker::Unfit { reason });
            }
        }
    }

    /// Checks distinctness against the job's other allocations.
    fn distinctness(&self, node: &Node, found: &mut Vec<PlacementBlocker>) {
        let distinct_hosts = self.requirements.distinct_hosts;
        if let Some(distinct) = distinct_hosts.filter(|_| !self.is_system) {
            let here = self.live.get(&node.id).into_iter().flatten();
            let counted = here.filter(|live| live.is_counted_at(distinct.level));
            let others: Vec<_> = counted.map(|live| live.name.clone()).collect();
            if !others.is_empty() {
                found.push(PlacementBlocker::DistinctHosts { others });
            }
        }
        // A system job does not place a second allocation on the node.
        let is_there = self.is_system && self.holds(node) > 0;
        for property in self.properties.iter().filter(|_| !is_there) {
            if let Err(reason) = property.check(node) {
                let is_missing = property.is_missing(node);
                found.push(PlacementBlocker::DistinctProperty { reason, is_missing });
            }
        }
    }

    /// Checks writers of the volumes, and claims that tie the group to other nodes.
    fn volumes(&self, position: usize, node: &Node, found: &mut Vec<PlacementBlocker>) {
        let volumes = &self.requirements.volumes;
        if !volumes.differ_by_alloc() && self.search.volume_is_taken(position) {
            let reason = VolumeAsks::CONFLICT.to_owned();
            found.push(PlacementBlocker::Unfit { reason });
        }
        let csi = self
            .requirements
            .csi
            .check(node, self.name_index, &[], |_| Vec::new());
        if let Err(reason) = csi
            && !found.iter().any(|blocker| blocker.reason() == reason)
        {
            found.push(PlacementBlocker::Unfit { reason });
        }
        let is_tied_elsewhere = || {
            let ties = self.search.ties();
            ties.is_some_and(|nodes| !nodes.contains(&node.id))
        };
        if !self.is_system && is_tied_elsewhere() {
            let reason = TIED_ELSEWHERE.to_owned();
            found.push(PlacementBlocker::Unfit { reason });
        }
    }

    /// Checks amounts and ports.
    fn amounts(&self, position: usize, node: &Node, found: &mut Vec<PlacementBlocker>) {
        let cluster = &self.search.cluster;
        let mut asked = self.requirements.resources;
        if !self.requirements.dedicated.is_empty() {
            let dedicated = &self.requirements.dedicated;
            let (assigned, short) = dedicated.assign_available(node, &cluster.holding(position));
            asked.cpu_mhz = asked.cpu_mhz.saturating_add(assigned.cpu_mhz);
            if short.cores > 0 {
                found.push(PlacementBlocker::Amount {
                    dimension: Exhausted::CORES,
                    unit: "cores",
                    missing: short.cores,
                    asked: dedicated.cores(),
                    available: u64::try_from(node.cores.len()).unwrap_or(u64::MAX),
                    by_cores: false,
                });
            }
            if !short.devices.is_empty() {
                found.push(PlacementBlocker::Devices {
                    short: short.devices,
                    is_held: dedicated.has_devices(node),
                });
            }
        }
        let free_allocs = cluster.free_allocs(position);
        if free_allocs < 1 {
            found.push(PlacementBlocker::Allocations {
                missing: free_allocs.abs_diff(1),
                max: node.max_allocs,
            });
        }
        let after = cluster.used(position).plus(asked).dimensions();
        let dimensions = after.into_iter().zip(node.available().dimensions());
        for ((after, available), asked) in dimensions.zip(asked.dimensions()) {
            let missing = after.amount.saturating_sub(available.amount);
            if missing > 0 {
                found.push(PlacementBlocker::Amount {
                    dimension: after.name,
                    unit: after.unit,
                    missing,
                    asked: asked.amount,
                    available: available.amount,
                    // A group with cores asks for their MHz.
                    by_cores: after.name == "cpu" && self.requirements.dedicated.cores() > 0,
                });
            }
        }
        self.ports(position, node, found);
    }
}

/// Checks whether the node is schedulable.
fn availability(node: &Node) -> Vec<PlacementBlocker> {
    let mut found = Vec::new();
    if node.status != NodeStatus::Ready {
        found.push(PlacementBlocker::Status(node.status));
    }
    if node.eligibility == model::NodeEligibility::Ineligible {
        found.push(PlacementBlocker::Ineligible);
    }
    if found.is_empty() && !node.is_schedulable() {
        found.push(PlacementBlocker::Closed);
    }
    found
}
