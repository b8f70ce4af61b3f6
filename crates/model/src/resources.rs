//! Amounts of a node's resources, and their sums.
//!
//! Units: MHz for cpu, MiB for memory and disk.

use serde::{Deserialize, Serialize};

use crate::exact;

/// An amount of every countable resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ComparableResources {
    #[serde(rename = "cpu")]
    pub cpu_mhz: u64,
    #[serde(rename = "mem")]
    pub memory_mib: u64,
    #[serde(rename = "disk")]
    pub disk_mib: u64,
}

impl ComparableResources {
    /// Returns the sum of both, dimension by dimension.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu_mhz: self.cpu_mhz.saturating_add(other.cpu_mhz),
            memory_mib: self.memory_mib.saturating_add(other.memory_mib),
            disk_mib: self.disk_mib.saturating_add(other.disk_mib),
        }
    }

    /// Returns `self` minus `other`; a dimension that would be negative is 0.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            cpu_mhz: self.cpu_mhz.saturating_sub(other.cpu_mhz),
            memory_mib: self.memory_mib.saturating_sub(other.memory_mib),
            disk_mib: self.disk_mib.saturating_sub(other.disk_mib),
        }
    }

    /// Returns the larger of both in each dimension.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            cpu_mhz: self.cpu_mhz.max(other.cpu_mhz),
            memory_mib: self.memory_mib.max(other.memory_mib),
            disk_mib: self.disk_mib.max(other.disk_mib),
        }
    }

    /// Returns the smaller of both in each dimension.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            cpu_mhz: self.cpu_mhz.min(other.cpu_mhz),
            memory_mib: self.memory_mib.min(other.memory_mib),
            disk_mib: self.disk_mib.min(other.disk_mib),
        }
    }

    /// Returns the first dimension in which `self` is more than `available`: cpu, memory, disk.
    pub fn exceeds(self, available: Self) -> Option<&'static str> {
        if self.cpu_mhz > available.cpu_mhz {
            Some("cpu")
        } else if self.memory_mib > available.memory_mib {
            Some("memory")
        } else if self.disk_mib > available.disk_mib {
            Some("disk")
        } else {
            None
        }
    }

    /// Returns every amount with its name, in the order of [`Self::exceeds`].
    pub fn dimensions(self) -> [Dimension; 3] {
        let named = [
            ("cpu", self.cpu_mhz, "MHz"),
            ("memory", self.memory_mib, "MiB"),
            ("disk", self.disk_mib, "MiB"),
        ];
        named.map(|(name, amount, unit)| Dimension { name, amount, unit })
    }
}

/// The amount of one resource, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// As [`ComparableResources::exceeds`] names it.
    pub name: &'static str,
    pub amount: u64,
    /// As in `MHz`.
    pub unit: &'static str,
}

/// Resources that one allocation holds on its node, summed over its tasks, as stored with it.
///
/// The share of each task is in the allocation's job version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AllocatedResources {
    #[serde(rename = "sum")]
    pub total: ComparableResources,
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "exact::list"
    )]
    pub ports: Vec<AllocatedPort>,
    /// Reserved cores; a task is listed once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<AllocatedCores>,
    /// Reserved device instances.
    #[serde(rename = "dev", default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<AllocatedDevice>,
    /// Tasks may use memory up to their `memory_max`: oversubscription was enabled at the placement.
    #[serde(rename = "over", default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_oversubscribed: bool,
}

impl AllocatedResources {
    /// Returns the ports that `task` uses: its own, then the group's.
    pub fn ports_of<'a>(&'a self, task: &'a str) -> impl Iterator<Item = &'a AllocatedPort> {
        let own = self.ports.iter().filter(move |port| port.is_of(task));
        own.chain(self.group_ports())
    }

    /// Returns the ports of the group, which all its tasks use.
    pub fn group_ports(&self) -> impl Iterator<Item = &AllocatedPort> {
        self.ports.iter().filter(|port| port.task.is_empty())
    }
}

/// Cores reserved for a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AllocatedCores {
    pub task: String,
    /// Core numbers of the kernel, ascending.
    pub ids: Vec<u16>,
}

/// Device instances of one model reserved for a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AllocatedDevice {
    pub task: String,
    pub vendor: String,
    #[serde(rename = "type")]
    pub device_type: String,
    pub name: String,
    pub instance_ids: Vec<String>,
}

/// A host port assigned to an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AllocatedPort {
    pub label: String,
    /// The port on the host.
    pub value: u16,
    /// The port inside the task's network; equal to `value` when the job left it open.
    pub to: u16,
    /// Host address of the port.
    pub host_ip: String,
    /// Assigned even if the port is in use; it still counts as in use for other allocations.
    #[serde(rename = "share", default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_collision: bool,
    /// The task whose resources ask for the port; empty: the group does, and all tasks use it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
}

impl AllocatedPort {
    /// Tells whether the resources of `task` ask for the port.
    pub fn is_of(&self, task: &str) -> bool {
        !self.task.is_empty() && self.task == task
    }
}
