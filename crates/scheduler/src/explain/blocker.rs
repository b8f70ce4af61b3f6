//! Placement blockers: one reason each why a node cannot take an allocation, and its remedy.

use std::time::Duration;

use model::{AllocId, NodeStatus};
use placement::reasons::MISSING_DRIVERS;
use placement::{DeviceShortage, VolumeAsks};

/// The result of checking one node for an allocation of a group.
///
/// In the order of the checks: a node that fails several has the verdict of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// In another datacenter or pool than the job asks for.
    OutOfScope,
    /// Down, disconnected or ineligible.
    Unavailable,
    /// It fails the group's constraints, drivers, networks or volumes.
    Filtered,
    /// It has too little left.
    Exhausted,
    /// It is suitable, but another node is better.
    Outscored,
    /// It has the allocation, would get it, or has completed it.
    Chosen,
}

impl Verdict {
    pub const ALL: [Self; 6] = [
        Self::OutOfScope,
        Self::Unavailable,
        Self::Filtered,
        Self::Exhausted,
        Self::Outscored,
        Self::Chosen,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::OutOfScope => "out-of-scope",
            Self::Unavailable => "unavailable",
            Self::Filtered => "filtered",
            Self::Exhausted => "exhausted",
            Self::Outscored => "outscored",
            Self::Chosen => "chosen",
        }
    }
}

/// One reason why a node cannot take an allocation of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementBlocker {
    Datacenter {
        datacenter: String,
    },
    Pool {
        pool: String,
    },
    Status(NodeStatus),
    Ineligible,
    /// It is not schedulable for another reason.
    Closed,
    Constraint {
        /// As in `${attr.kernel.name} = linux`.
        reason: String,
        /// The values of the facts that the constraint reads; `None`: the node has no such fact.
        facts: Vec<Option<String>>,
    },
    Driver {
        driver: String,
        fault: DriverFault,
    },
    DistinctHosts {
        /// The names of the job's allocations on the node.
        others: Vec<String>,
    },
    DistinctProperty {
        reason: String,
        /// The node has no value for the property.
        is_missing: bool,
    },
    /// Another unmet requirement.
    Unfit {
        reason: String,
    },
    Amount {
        /// As in `cpu`.
        dimension: &'static str,
        /// As in `MHz`.
        unit: &'static str,
        missing: u64,
        asked: u64,
        /// The capacity of the node for allocations.
        available: u64,
        /// The group asks for a number of cores.
        by_cores: bool,
    },
    StaticPort {
        label: String,
        port: u16,
        /// `None`: the port is reserved on the node.
        holder: Option<Holder>,
    },
    /// The group asks for the port more often than the node has addresses for it.
    SamePort {
        label: String,
        port: u16,
    },
    DynamicPorts {
        missing: u32,
    },
    /// Too few devices of some kinds.
    Devices {
        /// In the order of the requests.
        short: Vec<DeviceShortage>,
        /// The empty node would have enough.
        is_held: bool,
    },
    /// The node's maximum number of allocations is reached.
    Allocations {
        /// The number of allocations to stop first.
        missing: u32,
        /// The node's maximum.
        max: u32,
    },
    /// Volumes that the node lacks, some of them by the allocation's name index.
    Volumes {
        /// As in `data[2]`; not empty.
        volumes: Vec<String>,
    },
    /// The group of a system or sysbatch job has failed on the node.
    Failed {
        /// The rest of its reschedule delay; `None`: no attempts are left.
        again_in: Option<Duration>,
    },
    /// Another dimension that is exhausted.
    Exhausted {
        dimension: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverFault {
    Absent,
    Undetected,
    Unhealthy,
}

/// An allocation that holds a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub alloc_id: AllocId,
    pub job_id: String,
    /// It belongs to the job that is explained.
    pub is_own: bool,
}

impl Holder {
    /// Returns the change that would free the static port.
    fn change(&self, port: u16) -> String {
        let (alloc, job) = (self.alloc_id.short(), &self.job_id);
        let what = if self.is_own {
            "let it be dynamic, lower the count or add a node"
        } else {
            "stop that one or choose another port"
        };
        format!("static port {port} is held by allocation {alloc} of job {job:?}: {what}")
    }
}

impl PlacementBlocker {
    /// Returns the verdict that the blocker stands for.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Datacenter { .. } | Self::Pool { .. } => Verdict::OutOfScope,
            Self::Status(_) | Self::Ineligible | Self::Closed => Verdict::Unavailable,
            Self::Constraint { .. }
            | Self::Driver { .. }
            | Self::DistinctHosts { .. }
            | Self::DistinctProperty { .. }
            | Self::Volumes { .. }
            | Self::Failed { .. }
            | Self::SamePort { .. }
            | Self::Devices { is_held: false, .. }
            | Self::Unfit { .. } => Verdict::Filtered,
            Self::Amount { .. }
            | Self::StaticPort { .. }
            | Self::DynamicPorts { .. }
            | Self::Devices { is_held: true, .. }
            | Self::Allocations { .. }
            | Self::Exhausted { .. } => Verdict::Exhausted,
        }
    }

    /// Returns the key by which nodes are counted: as in metrics, where they have one.
    pub fn reason(&self) -> String {
        match self {
            Self::Datacenter { .. } => "not in the job's datacenters".to_owned(),
            Self::Pool { .. } => "not in the job's node pool".to_owned(),
            Self::Status(status) => format!("node is {}", status.as_str()),
            Self::Ineligible => "node is ineligible".to_owned(),
            Self::Closed => "node takes nothing new".to_owned(),
            Self::Constraint { reason, .. }
            | Self::DistinctProperty { reason, .. }
            | Self::Unfit { reason } => reason.clone(),
            Self::Driver { driver, .. } => format!("{MISSING_DRIVERS}: {driver}"),
            Self::DistinctHosts { .. } => placement::DistinctHosts::REASON.to_owned(),
            Self::Amount { dimension, .. } => (*dimension).to_owned(),
            Self::StaticPort { label, port, .. } | Self::SamePort { label, port } => {
                placement::Exhausted::PortCollision {
                    label: label.clone(),
                    port: *port,
                }
                .to_string()
            }
            Self::DynamicPorts { .. } => placement::Exhausted::DynamicPorts.to_string(),
            Self::Devices { is_held: true, .. } => placement::Exhausted::NO_DEVICES.to_owned(),
            Self::Devices {
                is_held: false,
                short,
            } => DeviceShortage::reason(short),
            Self::Allocations { .. } => placement::Exhausted::MAX_ALLOCS.to_owned(),
            Self::Volumes { .. } => placement::VolumeAsks::REASON.to_owned(),
            Self::Failed { again_in: Some(_) } => {
                "failed, waits for its reschedule delay".to_owned()
            }
            Self::Failed { again_in: None } => "failed, no reschedule attempts left".to_owned(),
            Self::Exhausted { dimension } => dimension.clone(),
        }
    }

    /// Returns the missing amount and its unit; `None`: it is no amount.
    pub fn missing(&self) -> Option<(u64, &'static str)> {
        match self {
            Self::Amount { missing, unit, .. } => Some((*missing, unit)),
            Self::DynamicPorts { missing } => Some((u64::from(*missing), "ports")),
            Self::Devices { short, .. } => {
                let missing: u64 = short.iter().map(|short| short.missing).sum();
                (missing > 0).then_some((missing, "devices"))
            }
            Self::Allocations { missing, .. } => Some((u64::from(*missing), "allocations")),
            _ => None,
        }
    }

    /// Returns the change that would remove the blocker, for people; `node` is the node's name.
    pub fn change(&self, node: &str) -> String {
        match self {
            Self::Datacenter { datacenter } => {
                format!("datacenters: add {datacenter:?}, where node {node} is")
            }
            Self::Pool { pool } => format!("node_pool: ask for {pool:?}, which node {node} is in"),
            Self::Status(status) => {
                format!("node {node}: bring it back, it is {}", status.as_str())
            }
            Self::Ineligible => format!("node {node}: make it eligible"),
            Self::Closed => format!("node {node}: let it take new allocations"),
            Self::Constraint { reason, facts } => {
                format!("constraint {reason}: node {node} has {}", values(facts))
            }
            Self::Driver { driver, fault } => {
                let fault = match fault {
                    DriverFault::Absent => "does not have it",
                    DriverFault::Undetected => "has not detected it",
                    DriverFault::Unhealthy => "reports it as unhealthy",
                };
                format!("driver {driver}: node {node} {fault}")
            }
            Self::DistinctHosts { others } => {
                let others = listed(others);
                format!("distinct_hosts: node {node} has {others}; lower the count or add a node")
            }
            Self::DistinctProperty {
                reason,
                is_missing: true,
            } => format!("{reason}: node {node} has no value, set one"),
            Self::DistinctProperty { reason, .. } => {
                let what = "lower the count, allow more, or add a node with another value";
                format!("{reason}; {what}")
            }
            Self::Unfit { reason } if reason == VolumeAsks::CONFLICT => format!(
                "{reason}: stop the job that writes to it on node {node}, or register a volume for this job"
            ),
            Self::Unfit { reason } => format!("{reason}: node {node} does not meet it"),
            Self::Amount { .. } => self.amount_change(node),
            Self::StaticPort { port, holder, .. } => match holder {
                Some(holder) => holder.change(*port),
                None => format!("static port {port} is reserved on node {node}: choose another"),
            },
            Self::SamePort { label, port } => format!(
                "static port {port}: the group asks for it twice on one address of node {node}; \
                 choose another for {label:?}, or a host network with another address"
            ),
            Self::DynamicPorts { missing } => format!(
                "dynamic ports: ask for {missing} fewer, or free {missing} of node {node}'s range"
            ),
            Self::Devices { short, is_held } => {
                let how = if *is_held { "free" } else { "add" };
                let changes = short.iter().map(|short| device_change(short, how, node));
                changes.collect::<Vec<_>>().join("; ")
            }
            Self::Allocations { missing, max } => format!(
                "allocations: node {node} takes {max} at most; stop {missing} there or add a node"
            ),
            Self::Volumes { volumes } => {
                let volumes: Vec<_> = volumes.iter().map(|name| format!("{name:?}")).collect();
                let volumes = listed(&volumes);
                format!(
                    "volume {volumes}: not available on node {node} in the requested mode; register it there"
                )
            }
            Self::Failed { again_in } => match again_in {
                Some(delay) => format!(
                    "reschedule: the next attempt on node {node} is due in {} s; job eval \
                     -force-reschedule skips the delay",
                    delay.as_secs()
                ),
                None => format!(
                    "reschedule: allow more attempts; job eval -force-reschedule retries on node \
                     {node}"
                ),
            },
            Self::Exhausted { dimension } => format!("{dimension}: free some on node {node}"),
        }
    }

    /// Returns the change for a missing amount; empty: it is another blocker.
    fn amount_change(&self, node: &str) -> String {
        let Self::Amount {
            dimension,
            unit,
            missing,
            asked,
            available,
            by_cores,
        } = self
        else {
            return String::new();
        };
        let (missing_unit, available_unit) = (one(unit, *missing), one(unit, *available));
        let missing_here = format!("free {missing} {missing_unit} on node {node}");
        if missing > asked {
            // Even an empty ask would not fit.
            format!("{dimension}: {missing_here}")
        } else if *by_cores {
            format!("{dimension}: reserve fewer cores, whose MHz count, or {missing_here}")
        } else if asked > available {
            let has = format!("node {node} has {available} {available_unit} in all");
            format!("{dimension}: ask {missing} {missing_unit} less, {has}")
        } else {
            format!("{dimension}: ask {missing} {missing_unit} less or {missing_here}")
        }
    }

    /// Returns the cost of removing the blocker, for comparing nodes.
    ///
    /// The numbers only define an order: amounts by their share of the node, then ports and other allocations,
    /// then settings of the job or the node, then hardware and repairs.
    pub(super) fn removal_cost(&self) -> f64 {
        match self {
            Self::Amount {
                missing, available, ..
            } => 0.1 + part(*missing, *available),
            Self::DynamicPorts { .. } => 0.4,
            Self::StaticPort { .. } => 0.5,
            Self::DistinctHosts { .. }
            | Self::DistinctProperty {
                is_missing: false, ..
            }
            | Self::Failed { .. } => 0.7,
            // A single command of the operator.
            Self::Ineligible => 0.9,
            Self::Constraint { .. } | Self::SamePort { .. } | Self::DistinctProperty { .. } => 1.0,
            Self::Datacenter { .. } | Self::Pool { .. } => 1.5,
            Self::Driver { .. }
            | Self::Exhausted { .. }
            | Self::Allocations { .. }
            | Self::Closed => 2.0,
            Self::Unfit { .. } | Self::Volumes { .. } | Self::Status(_) => 3.0,
            Self::Devices { short, is_held } => {
                let missing: u64 = short.iter().map(|short| short.missing).sum();
                let base = match (missing, is_held) {
                    (0, _) => 0.0,
                    (_, true) => 2.0,
                    (_, false) => 3.0,
                };
                // Ordered by number, without overtaking the next worse kind of blocker.
                let hardware = base + part(missing.min(99), 100);
                // As much as other constraints.
                let refused: usize = short.iter().map(|short| short.refused.len()).sum();
                hardware + part(u64::try_from(refused).unwrap_or(u64::MAX), 1)
            }
        }
    }
}

/// Returns the unit in singular or plural: `1 core`, `2 cores`, `1 MHz`.
fn one(unit: &str, amount: u64) -> &str {
    match unit.strip_suffix('s') {
        Some(single) if amount == 1 => single,
        _ => unit,
    }
}

fn device_change(short: &DeviceShortage, how: &str, node: &str) -> String {
    let DeviceShortage {
        name,
        asked,
        missing,
        is_constrained,
        refused,
    } = short;
    let mut changes: Vec<_> = refused
        .iter()
        .map(|refusal| {
            let (constraint, kind) = (&refusal.constraint, &refusal.kind);
            let values = values(&refusal.facts);
            format!("constraint {constraint}: {kind} on node {node} has {values}")
        })
        .collect();
    if *missing > 0 {
        let fit = if *is_constrained && refused.is_empty() {
            " that meets its constraints"
        } else {
            ""
        };
        let there = format!("{how} {missing} of one model{fit} on node {node}");
        changes.push(if missing < asked {
            format!("ask {missing} less or {there}")
        } else {
            // A request for 0 devices is invalid.
            there
        });
    }
    format!("device {name:?}: {}", changes.join(", and "))
}

fn values(facts: &[Option<String>]) -> String {
    let values = facts.iter().map(|fact| match fact {
        Some(fact) => format!("{fact:?}"),
        None => "no value".to_owned(),
    });
    values.collect::<Vec<_>>().join(" and ")
}

/// Lists the first names, and how many more there are.
fn listed(names: &[String]) -> String {
    const NAMED_MAX: usize = 3;
    let named = names[..names.len().min(NAMED_MAX)].join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named,
        1 => format!("{named} and one other"),
        others => format!("{named} and {others} others"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "only orders nodes")]
fn part(missing: u64, available: u64) -> f64 {
    missing as f64 / available.max(1) as f64
}
