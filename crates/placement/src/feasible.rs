//! Feasibility: whether a node can run a task group, regardless of its allocations.
//!
//! Constraints on facts of a computed class are checked once per class; constraints on unique
//! facts, devices, driver health, host networks and host volumes are checked on every node. (Cached
//! by class, one node's broken driver, or its few devices, would rule out its whole class.)

use std::borrow::Cow;
use std::collections::BTreeSet;

use model::{Job, Node, Operator, TaskGroup};
use rustc_hash::FxHashMap;

use crate::check::{Check, parse_bool};
use crate::csi::CsiAsks;
use crate::dedicated::DedicatedAsk;
use crate::distinct::{DistinctHosts, DistinctProperty, Level};
use crate::ports::PortAsk;
use crate::reasons::MISSING_DRIVERS;
use crate::scope::Scope;
use crate::volumes::VolumeAsks;

/// The reason of a node without a network of the group's mode.
const LACKS_NETWORK: &str = "missing network";

/// All requirements of a task group, compiled.
#[derive(Clone, Debug)]
pub struct Requirements {
    pub scope: Scope,
    /// Constraints of the job, the group and its tasks that a class can answer.
    class_checks: Vec<Check>,
    /// Constraints on unique facts.
    node_checks: Vec<Check>,
    drivers: BTreeSet<String>,
    /// The attribute of nodes that set up networks of the group's mode; `None`: all do.
    network: Option<String>,
    pub distinct_hosts: Option<DistinctHosts>,
    pub distinct_properties: Vec<DistinctProperty>,
    pub resources: model::ComparableResources,
    pub ports: Vec<PortAsk>,
    /// Ports are on a host network that not every node has.
    names_host_networks: bool,
    pub volumes: VolumeAsks,
    pub csi: CsiAsks,
    pub dedicated: DedicatedAsk,
}

impl Requirements {
    pub fn new(job: &Job, group: &TaskGroup) -> Self {
        let own = group.constraints.iter();
        let of_tasks = group.tasks.iter().flat_map(|task| &task.constraints);
        let all = job.constraints.iter().chain(own).chain(of_tasks);
        let (node_checks, class_checks) = all
            .filter(|constraint| {
                !matches!(
                    constraint.operator,
                    Operator::DistinctHosts | Operator::DistinctProperty
                )
            })
            .map(Check::new)
            .partition(Check::escapes_class);
        let levels = [
            (Level::Job, &job.constraints),
            (Level::Group, &group.constraints),
        ];
        let ports = PortAsk::of_group(group);
        Self {
            scope: Scope::new(job),
            class_checks,
            node_checks,
            drivers: group.tasks.iter().map(|task| task.driver.clone()).collect(),
            network: network(group),
            distinct_hosts: DistinctHosts::find(levels),
            distinct_properties: DistinctProperty::find(levels),
            resources: group.ask(),
            names_host_networks: !ports.iter().all(PortAsk::is_on_default),
            ports,
            volumes: VolumeAsks::of_group(job, group),
            csi: CsiAsks::of_group(job, group),
            dedicated: DedicatedAsk::of_group(group),
        }
    }

    /// Uses the registered volumes of a snapshot.
    #[must_use]
    pub fn looking_in(mut self, snapshot: &state::Snapshot) -> Self {
        self.volumes.resolve(snapshot);
        self.csi.resolve(snapshot);
        self
    }

    /// Tells whether distinctness against the job's other allocations may rule out nodes.
    pub fn is_distinct(&self) -> bool {
        self.distinct_hosts.is_some() || !self.distinct_properties.is_empty()
    }

    /// Tells whether a constraint reads unique facts, or the group asks for a storage system's volume,
    /// so that any node's change may help.
    pub fn escapes_class(&self) -> bool {
        !self.node_checks.is_empty() || !self.csi.is_empty()
    }

    /// Tells whether allocations of the group ask for volumes of their own, so that checks differ
    /// between allocations.
    pub fn differ_by_alloc(&self) -> bool {
        self.volumes.differ_by_alloc() || self.csi.differ_by_alloc()
    }

    /// Tells whether each node has to be checked, because nodes of one class may differ: by unique
    /// facts, devices, addresses or volumes.
    pub fn asks_nodes(&self) -> bool {
        self.escapes_class()
            || self.dedicated.asks_devices()
            || self.names_host_networks
            || !self.volumes.is_empty()
            || self.csi.asks_nodes()
    }

    /// Tells whether the nodes of `node`'s class are in scope and pass every constraint that a
    /// class can answer.
    pub fn class_passes(&self, node: &Node) -> bool {
        self.scope.contains(node) && self.failed_in_class(node).is_none()
    }

    /// Checks the conditions shared by all nodes with the same facts and drivers, without scope:
    /// one node stands for all.
    ///
    /// # Errors
    /// The first reason, in the order: constraints, drivers, network.
    pub fn check_shared(&self, node: &Node) -> Result<(), Infeasible<'_>> {
        match self.failed_in_class(node) {
            Some(check) => Err(Infeasible::Constraint(check.reason())),
            None => self.check_equipment(node),
        }
    }

    /// Checks the conditions that may differ between nodes of a class: constraints on unique facts,
    /// host networks and volumes. An allocation's own volumes are not checked here.
    ///
    /// # Errors
    /// The first reason, in the order: constraints, host networks, host volumes.
    pub fn check_own(&self, node: &Node) -> Result<(), Infeasible<'_>> {
        self.check_unique(node)?;
        self.check_host_parts(node)
    }

    /// Checks constraints on unique facts, and devices, of which nodes of one class may have
    /// different numbers.
    ///
    /// # Errors
    /// The first constraint that fails, or the lack of devices.
    pub fn check_unique(&self, node: &Node) -> Result<(), Infeasible<'_>> {
        if let Some(check) = self.node_checks.iter().find(|check| !check.passes(node)) {
            return Err(Infeasible::Constraint(check.reason()));
        }
        match self.dedicated.lacks_devices(node) {
            Some(reason) => Err(Infeasible::Devices(reason)),
            None => Ok(()),
        }
    }

    /// Returns every constraint that `node` fails, for explanations; [`Self::check_shared`] and
    /// [`Self::check_unique`] are faster.
    pub fn failed_checks(&self, node: &Node) -> impl Iterator<Item = &Check> {
        let checks = self.class_checks.iter().chain(&self.node_checks);
        checks.filter(|check| !check.passes(node))
    }

    /// Returns every driver that `node` cannot start tasks with.
    pub fn missing_drivers(&self, node: &Node) -> impl Iterator<Item = &str> {
        let drivers = self.drivers.iter().map(String::as_str);
        drivers.filter(|driver| !has_driver(node, driver))
    }

    /// Returns why `node` cannot set up the group's network; `None`: it can.
    pub fn network_fault(&self, node: &Node) -> Option<&str> {
        let attribute = self.network.as_ref()?;
        let value = node.attributes.get(attribute);
        let has_network = value.is_some_and(|text| parse_bool(text) == Some(true));
        (!has_network).then_some(LACKS_NETWORK)
    }

    fn failed_in_class(&self, node: &Node) -> Option<&Check> {
        self.class_checks.iter().find(|check| !check.passes(node))
    }

    fn check_equipment(&self, node: &Node) -> Result<(), Infeasible<'_>> {
        if !self.drivers.iter().all(|driver| has_driver(node, driver)) {
            return Err(Infeasible::Drivers);
        }
        match self.network_fault(node) {
            Some(reason) => Err(Infeasible::Network(Cow::Borrowed(reason))),
            None => Ok(()),
        }
    }

    /// Returns the host networks and volumes that `node` lacks, which no class covers.
    pub fn missing_host_parts(&self, node: &Node) -> impl Iterator<Item = Infeasible<'_>> {
        let asks = if self.names_host_networks {
            self.ports.as_slice()
        } else {
            &[]
        };
        let networks = asks.iter().filter_map(|ask| ask.check_network(node).err());
        let networks = networks.map(|reason| Infeasible::Network(Cow::Owned(reason)));
        let volumes = (!self.volumes.pass_for_all(node)).then_some(Infeasible::Volumes);
        let csi = self.csi.check_shared(node).err().map(Infeasible::Csi);
        networks.chain(volumes).chain(csi)
    }

    fn check_host_parts(&self, node: &Node) -> Result<(), Infeasible<'_>> {
        self.missing_host_parts(node).next().map_or(Ok(()), Err)
    }
}

/// The reason why a node cannot run a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Infeasible<'a> {
    /// The first constraint that the node fails.
    Constraint(&'a str),
    Drivers,
    Network(Cow<'a, str>),
    Volumes,
    /// A storage system's volume, or support of its plugins.
    Csi(String),
    /// Too few devices of the requested kinds, even if all were free.
    Devices(Cow<'static, str>),
}

impl Infeasible<'_> {
    /// Returns the reason in metrics.
    pub fn reason(&self) -> &str {
        match self {
            Self::Constraint(reason) => reason,
            Self::Network(reason) | Self::Devices(reason) => reason,
            Self::Drivers => MISSING_DRIVERS,
            Self::Volumes => VolumeAsks::REASON,
            Self::Csi(reason) => reason,
        }
    }
}

/// Checks nodes, with a cache of constraint checks per class.
#[derive(Clone, Debug)]
pub struct Feasibility<'a> {
    requirements: &'a Requirements,
    /// Class → the first constraint that its nodes fail; `None`: they pass all that a class can
    /// answer.
    classes: FxHashMap<&'a str, Option<&'a Check>>,
}

impl<'a> Feasibility<'a> {
    pub fn new(requirements: &'a Requirements) -> Self {
        Self {
            requirements,
            classes: FxHashMap::default(),
        }
    }

    /// Checks everything except scope, amounts, ports, distinctness and an allocation's own
    /// volumes.
    ///
    /// # Errors
    /// The first reason, in the order: constraints, devices, drivers, network, host volumes.
    pub fn check(&mut self, node: &'a Node) -> Result<(), Infeasible<'a>> {
        if let Some(check) = self.failed_in_class(node) {
            return Err(Infeasible::Constraint(check.reason()));
        }
        self.requirements.check_unique(node)?;
        self.requirements.check_equipment(node)?;
        self.requirements.check_host_parts(node)
    }

    fn failed_in_class(&mut self, node: &'a Node) -> Option<&'a Check> {
        let requirements = self.requirements;
        // A node without a class stands for itself alone.
        let class = node.computed_class.as_str();
        if class.is_empty() {
            return requirements.failed_in_class(node);
        }
        *self
            .classes
            .entry(class)
            .or_insert_with(|| requirements.failed_in_class(node))
    }
}

/// Tells whether the node can start tasks with `driver`: by its own report, else by the attribute
/// `driver.<name>`.
fn has_driver(node: &Node, driver: &str) -> bool {
    match node.drivers.get(driver) {
        Some(info) => info.detected && info.healthy,
        None => {
            let attribute = node.attributes.get(&format!("driver.{driver}"));
            attribute.is_some_and(|text| parse_bool(text) == Some(true))
        }
    }
}

fn network(group: &TaskGroup) -> Option<String> {
    let network = group.networks.first()?;
    match network.mode.as_str() {
        // Every node has its own network.
        "" | "host" => None,
        mode => Some(model::network_attribute(mode)),
    }
}

#[cfg(test)]
mod tests {
    use model::job::{Network, Port};
    use model::{ComparableResources, Constraint, JobType};
    use test_kit::builders;

    use super::*;

    fn constraint(left: &str, operator: Operator, right: &str) -> Constraint {
        Constraint {
            left: left.into(),
            operator,
            right: right.into(),
        }
    }

    fn requirements(edit: impl FnOnce(&mut Job)) -> Requirements {
        let mut job = builders::service("web", 1);
        edit(&mut job);
        Requirements::new(&job, &job.task_groups[0])
    }

    /// Nomad counts one true reason and calls the others "computed class ineligible"; here all
    /// twenty say why.
    #[test]
    fn scenario_110_a_class_is_asked_once_and_all_its_nodes_say_why() {
        let requirements = requirements(|job| {
            job.constraints
                .push(constraint("${attr.kernel.name}", Operator::Equal, "plan9"));
        });
        let mut nodes: Vec<_> = (0..20).map(builders::node).collect();
        // Asked itself, the last one would pass: it is taken at its class's word.
        nodes[19]
            .attributes
            .insert("kernel.name".into(), "plan9".into());
        let mut feasibility = Feasibility::new(&requirements);
        for node in &nodes {
            let answer = feasibility.check(node);
            let reason = "${attr.kernel.name} = plan9";
            assert_eq!(answer, Err(Infeasible::Constraint(reason)), "{}", node.name);
        }
        assert!(!requirements.escapes_class());
    }

    #[test]
    fn scenario_111_unique_facts_are_asked_of_every_node() {
        let requirements = requirements(|job| {
            let want = constraint("${node.unique.name}", Operator::Equal, "n2");
            job.task_groups[0].tasks[0].constraints.push(want);
        });
        let nodes = [builders::node(1), builders::node(2)];
        let mut feasibility = Feasibility::new(&requirements);
        assert_eq!(
            feasibility.check(&nodes[0]),
            Err(Infeasible::Constraint("${node.unique.name} = n2"))
        );
        assert_eq!(feasibility.check(&nodes[1]), Ok(()));
        assert!(requirements.escapes_class());
    }

    #[test]
    fn nodes_without_a_class_do_not_share_answers() {
        let requirements = requirements(|job| {
            job.constraints
                .push(constraint("${meta.rack}", Operator::Equal, "r1"));
        });
        let mut nodes = [builders::node(1), builders::node(2)];
        for node in &mut nodes {
            node.computed_class.clear();
        }
        nodes[1].meta.insert("rack".into(), "r1".into());
        let mut feasibility = Feasibility::new(&requirements);
        assert!(feasibility.check(&nodes[0]).is_err());
        assert_eq!(feasibility.check(&nodes[1]), Ok(()));
    }

    #[test]
    fn a_broken_driver_rules_out_its_node_and_not_the_class() {
        let requirements = requirements(|_| {});
        let mut nodes = [builders::node(1), builders::node(2), builders::node(3)];
        nodes[0].drivers.get_mut("mock_driver").unwrap().healthy = false;
        nodes[2].drivers.clear();
        let mut feasibility = Feasibility::new(&requirements);
        assert_eq!(feasibility.check(&nodes[0]), Err(Infeasible::Drivers));
        assert_eq!(feasibility.check(&nodes[1]), Ok(()));
        assert_eq!(feasibility.check(&nodes[2]), Err(Infeasible::Drivers));
        // Without a report of the driver's own, the attribute speaks for it.
        nodes[2]
            .attributes
            .insert("driver.mock_driver".into(), "1".into());
        let mut feasibility = Feasibility::new(&requirements);
        assert_eq!(feasibility.check(&nodes[2]), Ok(()));
    }

    #[test]
    fn networks_that_nodes_do_not_have_are_refused() {
        let with_network = |mode: &str, host_network: &str| {
            requirements(|job| {
                job.task_groups[0].networks.push(Network {
                    mode: mode.into(),
                    ports: vec![Port {
                        label: "http".into(),
                        static_port: None,
                        to: None,
                        host_network: host_network.into(),
                        ignore_collision: false,
                    }],
                    ..Network::default()
                });
            })
        };
        let mut node = builders::node(1);
        let ask = |node: &Node, mode, host_network| {
            let requirements = with_network(mode, host_network);
            Feasibility::new(&requirements)
                .check(node)
                .map_err(|e| e.reason().to_owned())
        };
        assert_eq!(ask(&node, "host", "default"), Ok(()));
        assert_eq!(ask(&node, "", ""), Ok(()));
        let missing = Err("missing network".to_owned());
        for mode in ["bridge", "none", "cni/lan"] {
            assert_eq!(ask(&node, mode, ""), missing, "{mode}");
            let attribute = model::network_attribute(mode);
            node.attributes.insert(attribute.clone(), "false".into());
            assert_eq!(ask(&node, mode, ""), missing, "{mode}");
            node.attributes.insert(attribute, "true".into());
            assert_eq!(ask(&node, mode, ""), Ok(()), "{mode}");
        }
        assert_eq!(ask(&node, "cni/other", ""), missing);
        assert_eq!(
            ask(&node, "host", "private"),
            Err("missing host network \"private\" for port \"http\"".to_owned())
        );
    }

    #[test]
    fn a_class_out_of_scope_does_not_pass() {
        let requirements = requirements(|job| job.datacenters = vec!["dc2".into()]);
        let mut node = builders::node(1);
        assert!(!requirements.class_passes(&node));
        node.datacenter = "dc2".into();
        assert!(requirements.class_passes(&node));
        node.node_pool = "gpu".into();
        assert!(!requirements.class_passes(&node));
    }

    #[test]
    fn scenario_118_the_ask_is_the_largest_stage_of_the_group() {
        use model::job::{Lifecycle, LifecycleHook};
        let mut group = builders::group("web", JobType::Service, 1);
        let mut init = builders::task("init");
        init.resources.cpu_mhz = 1_000;
        init.lifecycle = Some(Lifecycle {
            hook: LifecycleHook::Prestart,
            sidecar: false,
            wait_for: None,
        });
        group.tasks[0].resources.cpu_mhz = 1_100;
        group.tasks.push(init);
        assert_eq!(group.ask().cpu_mhz, 1_100, "prestart 1000, then main 1100");
        group.tasks[1].lifecycle = Some(Lifecycle {
            hook: LifecycleHook::Prestart,
            sidecar: true,
            wait_for: None,
        });
        assert_eq!(group.ask().cpu_mhz, 2_100, "a sidecar stays");
        let fits = |main_tasks: &[u32]| {
            let mut group = builders::group("web", JobType::Service, 1);
            group.tasks.clear();
            for cpu_mhz in main_tasks {
                let mut task = builders::task("main");
                task.resources.cpu_mhz = *cpu_mhz;
                group.tasks.push(task);
            }
            let mut node = builders::node(1);
            node.resources.cpu_mhz = 1_200;
            crate::fits(
                node.available(),
                ComparableResources::default(),
                group.ask(),
            )
        };
        assert_eq!(fits(&[400, 400, 400]), Ok(()));
        assert_eq!(fits(&[700, 600]), Err(crate::Exhausted::Amount("cpu")));
    }
}
