//! One thing that keeps a group off a node, and what would take it away.

use std::time::Duration;

use model::{AllocId, NodeStatus};
use placement::{DeviceShortage, VolumeAsks};

/// What became of a node that was asked to take one of a group.
///
/// The order is that of the questions: a node that fails several has the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// In another datacenter or pool than the job asks for.
    OutOfScope,
    /// Down, out of reach, or not to take anything new.
    Unavailable,
    /// It lacks what the group's constraints, drivers and networks ask for.
    Filtered,
    /// It has too little left.
    Exhausted,
    /// It could take it, but another node is better.
    Outscored,
    /// It has it, would get it, or has done with it.
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

/// One thing that keeps a group off a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    Datacenter {
        datacenter: String,
    },
    Pool {
        pool: String,
    },
    Status(NodeStatus),
    Ineligible,
    /// It takes nothing new, for a reason that is not known here.
    Closed,
    Constraint {
        /// As in `${attr.kernel.name} = linux`.
        reason: String,
        /// What the node says of the facts that are asked for; `None`: it has no such fact.
        facts: Vec<Option<String>>,
    },
    Driver {
        driver: String,
        fault: DriverFault,
    },
    DistinctHosts {
        /// The names of the job's allocations that are on the node.
        others: Vec<String>,
    },
    DistinctProperty {
        reason: String,
        /// The node has no value at all.
        is_missing: bool,
    },
    /// What else a node has to have.
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
        /// What the node has for allocations in all.
        available: u64,
        /// It is asked for by the number of cores.
        by_cores: bool,
    },
    StaticPort {
        label: String,
        port: u16,
        /// `None`: the node keeps it for itself.
        holder: Option<Holder>,
    },
    /// The group itself asks for it more often than the node has addresses for that.
    SamePort {
        label: String,
        port: u16,
    },
    DynamicPorts {
        missing: u32,
    },
    /// Of some kinds of devices there are too few.
    Devices {
        /// In the order of the requests.
        short: Vec<DeviceShortage>,
        /// It would have enough if nobody held any.
        is_held: bool,
    },
    /// The node takes no more allocations, whatever their size.
    Allocations {
        /// How many have to go first.
        missing: u32,
        /// How many the node takes.
        max: u32,
    },
    /// It lacks volumes; some may be asked for by the number in the allocation's name.
    Volumes {
        /// As in `data[2]`; not empty.
        volumes: Vec<String>,
    },
    /// Of a job that is to be everywhere: the group has failed there.
    Failed {
        /// When its policy has it placed again; `None`: not any more.
        again_in: Option<Duration>,
    },
    /// What else a node can have too little of.
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

/// An allocation that has what another asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub alloc_id: AllocId,
    pub job_id: String,
    /// It is of the very job that asks.
    pub is_own: bool,
}

impl Obstacle {
    /// Returns what a node has become for it.
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

    /// Returns what nodes are counted by; where metrics have a word for it, that word.
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
            Self::Driver { driver, .. } => format!("missing drivers: {driver}"),
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
            Self::Failed { again_in: Some(_) } => "failed, and waits to be placed again".to_owned(),
            Self::Failed { again_in: None } => "failed, and has no attempts left".to_owned(),
            Self::Exhausted { dimension } => dimension.clone(),
        }
    }

    /// Returns how much is missing, and its unit, where it can be counted.
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

    /// Returns what would take it away, for people; `node` is the node's name.
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
                format!("constraint {reason}: node {node} {}", says(facts))
            }
            Self::Driver { driver, fault } => {
                let fault = match fault {
                    DriverFault::Absent => "does not have it",
                    DriverFault::Undetected => "has not detected it",
                    DriverFault::Unhealthy => "calls it unhealthy",
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
            } => format!("{reason}: node {node} does not say, give it a value"),
            Self::DistinctProperty { reason, .. } => {
                let what = "lower the count, allow more, or add a node with another value";
                format!("{reason}; {what}")
            }
            Self::Unfit { reason } if reason == VolumeAsks::CONFLICT => format!(
                "{reason}: stop who writes to it on node {node}, or register one for this job"
            ),
            Self::Unfit { reason } => format!("{reason}: node {node} does not have what is asked"),
            Self::Amount {
                dimension,
                unit,
                missing,
                asked,
                available,
                by_cores,
            } => {
                let (missing_unit, available_unit) = (one(unit, *missing), one(unit, *available));
                let missing_here = format!("free {missing} {missing_unit} on node {node}");
                if missing > asked {
                    // Even one that asked for nothing would not fit.
                    format!("{dimension}: {missing_here}")
                } else if *by_cores {
                    format!(
                        "{dimension}: ask fewer cores, which count with their MHz, or {missing_here}"
                    )
                } else if asked > available {
                    let has = format!("node {node} has {available} {available_unit} in all");
                    format!("{dimension}: ask {missing} {missing_unit} less, {has}")
                } else {
                    format!("{dimension}: ask {missing} {missing_unit} less or {missing_here}")
                }
            }
            Self::StaticPort { port, holder, .. } => match holder {
                Some(holder) => {
                    let (alloc, job) = (holder.alloc_id.short(), &holder.job_id);
                    let what = if holder.is_own {
                        "let it be dynamic, lower the count or add a node"
                    } else {
                        "stop that one or choose another port"
                    };
                    format!(
                        "static port {port} is held by allocation {alloc} of job {job:?}: {what}"
                    )
                }
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
                    "volume {volumes}: node {node} does not have it as it is asked for: register it there"
                )
            }
            Self::Failed { again_in } => match again_in {
                Some(span) => format!(
                    "reschedule: node {node} gets another in {} s; job eval -force-reschedule does \
                     not wait",
                    span.as_secs()
                ),
                None => format!(
                    "reschedule: allow more attempts; job eval -force-reschedule tries again on \
                     node {node}"
                ),
            },
            Self::Exhausted { dimension } => format!("{dimension}: free some on node {node}"),
        }
    }

    /// Returns how much it takes to remove it, for comparing nodes.
    ///
    /// The numbers only say what comes first: amounts by their part of the node, then ports and
    /// where the job's others are, then what the job or the node says of itself, then what somebody
    /// has to repair.
    pub(super) fn effort(&self) -> f64 {
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
            // One command of the operator's.
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
                // Few devices come before many, and many not after what is worse.
                let hardware = base + part(missing.min(99), 100);
                // As other constraints.
                let refused: usize = short.iter().map(|short| short.refused.len()).sum();
                hardware + part(u64::try_from(refused).unwrap_or(u64::MAX), 1)
            }
        }
    }
}

/// Returns a unit as it stands after a number: `1 core`, `2 cores`, `1 MHz`.
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
            let said = says(&refusal.facts);
            format!("constraint {constraint}: {kind} on node {node} {said}")
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
            // Nobody asks for none.
            there
        });
    }
    format!("device {name:?}: {}", changes.join(", and "))
}

fn says(facts: &[Option<String>]) -> String {
    let said = facts.iter().map(|fact| match fact {
        Some(fact) => format!("says {fact:?}"),
        None => "does not say".to_owned(),
    });
    said.collect::<Vec<_>>().join(" and ")
}

/// Names a few of many.
fn listed(names: &[String]) -> String {
    /// How many are named.
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
