//! Resources of an allocation: what it holds, the share of each task, and the older forms of both.
//!
//! An allocation stores sums, ports, cores and devices; the share of each task follows from its job version.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

/// The sum of all tasks, or the group's own share: forms of older versions of the API.
#[derive(Debug, Serialize)]
pub(super) struct Resources {
    #[serde(rename = "CPU")]
    cpu: u64,
    #[serde(rename = "MemoryMB")]
    memory_mb: u64,
    #[serde(rename = "DiskMB")]
    disk_mb: u64,
}

impl Resources {
    pub(super) fn total(held: &v1::AllocatedResources) -> Self {
        Self {
            cpu: held.cpu_mhz,
            memory_mb: held.memory_mib,
            disk_mb: held.disk_mib,
        }
    }

    /// Only the disk is the group's.
    pub(super) fn shared(held: &v1::AllocatedResources) -> Self {
        Self {
            cpu: 0,
            memory_mb: 0,
            disk_mb: held.disk_mib,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AllocatedResources<'a> {
    shared: SharedResources<'a>,
    tasks: BTreeMap<&'a str, Task<'a>>,
    /// Absent without the job version.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_lifecycles: Option<BTreeMap<&'a str, Option<Lifecycle<'a>>>>,
}

#[derive(Debug, Serialize)]
struct SharedResources<'a> {
    #[serde(rename = "DiskMB")]
    disk_mb: u64,
    #[serde(rename = "Ports")]
    ports: Vec<Port<'a>>,
}

/// The share of one task.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Task<'a> {
    /// Absent without the job version, as `memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<Cpu<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
    networks: Vec<Network<'a>>,
    devices: Vec<Device<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Cpu<'a> {
    /// 0 with reserved cores: their speed is in the node's record alone.
    cpu_shares: i64,
    reserved_cores: &'a [u32],
}

#[derive(Debug, Serialize)]
struct Memory {
    #[serde(rename = "MemoryMB")]
    memory_mb: i64,
    /// 0 unless oversubscription was enabled at the placement.
    #[serde(rename = "MemoryMaxMB")]
    memory_max_mb: i64,
}

/// Ports of a task on one address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Network<'a> {
    #[serde(rename = "IP")]
    ip: &'a str,
    /// Static ports; without the job version all ports are listed as dynamic.
    reserved_ports: Vec<Port<'a>>,
    dynamic_ports: Vec<Port<'a>>,
}

#[derive(Debug, Serialize)]
struct Port<'a> {
    #[serde(rename = "Label")]
    label: &'a str,
    #[serde(rename = "Value")]
    value: u32,
    #[serde(rename = "To")]
    to: u32,
    #[serde(rename = "HostIP")]
    host_ip: &'a str,
}

impl<'a> From<&'a v1::AllocatedPort> for Port<'a> {
    fn from(port: &'a v1::AllocatedPort) -> Self {
        Self {
            label: &port.label,
            value: port.value,
            to: port.to,
            host_ip: &port.host_ip,
        }
    }
}

#[derive(Debug, Serialize)]
struct Device<'a> {
    #[serde(rename = "Vendor")]
    vendor: &'a str,
    #[serde(rename = "Type")]
    r#type: &'a str,
    #[serde(rename = "Name")]
    name: &'a str,
    #[serde(rename = "DeviceIDs")]
    device_ids: &'a [String],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Lifecycle<'a> {
    hook: &'a str,
    sidecar: bool,
}

impl<'a> AllocatedResources<'a> {
    pub(super) fn new(held: &'a v1::AllocatedResources, group: Option<&'a v1::TaskGroup>) -> Self {
        let mut tasks: BTreeMap<&str, Task<'_>> = group
            .into_iter()
            .flat_map(|group| &group.tasks)
            .map(|task| (task.name(), Task::new(task, held)))
            .collect();
        for port in held.ports.iter().filter(|port| !port.task.is_empty()) {
            let is_static = group.is_some_and(|group| is_static(group, port));
            tasks.entry(&port.task).or_default().add(port, is_static);
        }
        for device in &held.devices {
            let devices = &mut tasks.entry(&device.task).or_default().devices;
            devices.push(Device {
                vendor: &device.vendor,
                r#type: &device.r#type,
                name: &device.name,
                device_ids: &device.instance_ids,
            });
        }
        let of_group = held.ports.iter().filter(|port| port.task.is_empty());
        Self {
            shared: SharedResources {
                disk_mb: held.disk_mib,
                ports: of_group.map(Port::from).collect(),
            },
            tasks,
            task_lifecycles: group.map(lifecycles),
        }
    }
}

fn is_static(group: &v1::TaskGroup, port: &v1::AllocatedPort) -> bool {
    let task = group.tasks.iter().find(|task| task.name() == port.task);
    let resources = task.and_then(|task| task.resources.as_ref());
    let networks = resources.into_iter().flat_map(|asked| &asked.networks);
    let mut reserved = networks.flat_map(|network| &network.reserved_ports);
    reserved.any(|reserved| reserved.label() == port.label)
}

fn lifecycles(group: &v1::TaskGroup) -> BTreeMap<&str, Option<Lifecycle<'_>>> {
    let mut lifecycles = BTreeMap::new();
    for task in &group.tasks {
        let lifecycle = task.lifecycle.as_ref().map(|lifecycle| Lifecycle {
            hook: lifecycle.hook(),
            sidecar: lifecycle.sidecar(),
        });
        lifecycles.insert(task.name(), lifecycle);
    }
    lifecycles
}

impl<'a> Task<'a> {
    /// Returns the share of a task of the job, without its ports and devices.
    fn new(task: &v1::Task, held: &'a v1::AllocatedResources) -> Self {
        let asked = task.resources.clone().unwrap_or_default();
        let reserved = held.cores.iter().find(|cores| cores.task == task.name());
        Self {
            cpu: Some(Cpu {
                cpu_shares: asked.cpu_mhz(),
                reserved_cores: reserved.map(|cores| &*cores.ids).unwrap_or_default(),
            }),
            memory: Some(Memory {
                memory_mb: asked.memory_mib(),
                memory_max_mb: match held.memory_oversubscribed {
                    true => asked.memory_max_mib(),
                    false => 0,
                },
            }),
            ..Self::default()
        }
    }

    fn add(&mut self, port: &'a v1::AllocatedPort, is_static: bool) {
        let known = self
            .networks
            .iter()
            .position(|known| known.ip == port.host_ip);
        let position = known.unwrap_or_else(|| {
            self.networks.push(Network {
                ip: &port.host_ip,
                reserved_ports: Vec::new(),
                dynamic_ports: Vec::new(),
            });
            self.networks.len() - 1
        });
        let network = &mut self.networks[position];
        let ports = match is_static {
            true => &mut network.reserved_ports,
            false => &mut network.dynamic_ports,
        };
        ports.push(port.into());
    }
}
