//! A task's environment variables, and the interpolation of `${…}` in its configuration.
//!
//! Source: Nomad's public list of runtime variables.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use model::node::{HostVolume, NodeDevice};
use model::{AllocatedPort, Allocation, Job, MemoryMax, NetworkStatus, Node, Task, TaskGroup};
use serde_json::{Map, Value};

use crate::core_list;
use crate::dirs::TaskDirs;
use crate::driver::MachineSize;
use crate::resource_limits::ResourceLimits;

/// Values of `${node.…}`, `${attr.…}` and `${meta.…}`, volumes, cores and devices of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    variables: BTreeMap<String, String>,
    datacenter: String,
    /// Name → host volume.
    volumes: BTreeMap<String, HostVolume>,
    /// Name in the group → mounted volume of a storage system.
    mounted: BTreeMap<String, HostVolume>,
    core_mhz: BTreeMap<u16, u32>,
    machine: MachineSize,
    /// Devices that set a variable for their tasks.
    devices: Vec<NodeDevice>,
    /// Of an allocation with its own network.
    network: Option<NetworkStatus>,
}

impl NodeFacts {
    /// Returns the limits of `task` in `alloc`.
    pub fn resource_limits(&self, task: &Task, alloc: &Allocation) -> ResourceLimits {
        ResourceLimits::new(task, alloc, &self.core_mhz)
    }

    pub fn new(node: &Node, region: &str) -> Self {
        let mut variables = BTreeMap::new();
        for (name, value) in &node.attributes {
            variables.insert(format!("attr.{name}"), value.clone());
        }
        for (name, value) in &node.meta {
            variables.insert(format!("meta.{name}"), value.clone());
        }
        for (name, value) in [
            ("node.unique.id", node.id.to_string()),
            ("node.unique.name", node.name.clone()),
            ("node.datacenter", node.datacenter.clone()),
            ("node.region", region.to_owned()),
            ("node.class", node.node_class.clone()),
            ("node.pool", node.node_pool.clone()),
        ] {
            variables.insert(name.to_owned(), value);
        }
        Self {
            variables,
            datacenter: node.datacenter.clone(),
            volumes: node.host_volumes.clone(),
            mounted: BTreeMap::new(),
            core_mhz: node.cores.clone(),
            machine: MachineSize {
                cpu_mhz: node.resources.cpu_mhz,
                cores: node
                    .attributes
                    .get("cpu.numcores")
                    .and_then(|cores| cores.parse().ok())
                    .unwrap_or(1),
            },
            devices: node
                .devices
                .iter()
                .filter(|device| !device.env.is_empty())
                .cloned()
                .collect(),
            network: None,
        }
    }

    /// Returns the node's cpu.
    pub fn machine(&self) -> MachineSize {
        self.machine
    }

    /// Returns these facts plus registered volumes, name → path. Volumes of the node's own
    /// configuration take precedence.
    #[must_use]
    pub fn with_volumes(&self, paths: &BTreeMap<String, String>) -> Self {
        let mut facts = self.clone();
        for (name, path) in paths {
            let volume = || HostVolume {
                path: path.clone(),
                read_only: false,
            };
            facts.volumes.entry(name.clone()).or_insert_with(volume);
        }
        facts
    }

    /// Returns these facts plus the storage systems' volumes of an allocation, name in the group → path.
    #[must_use]
    pub fn with_mounted(mut self, paths: BTreeMap<String, String>) -> Self {
        let volume = |path| HostVolume {
            path,
            read_only: false,
        };
        let paths = paths.into_iter();
        self.mounted = paths.map(|(name, path)| (name, volume(path))).collect();
        self
    }

    /// Returns these facts for an allocation with a network of its own.
    #[must_use]
    pub fn with_network(mut self, network: Option<NetworkStatus>) -> Self {
        self.network = network;
        self
    }

    /// Returns the network of the allocation; `None`: it is the node's.
    pub fn network(&self) -> Option<&NetworkStatus> {
        self.network.as_ref()
    }

    /// Returns the address of the node that its tasks are reached at; empty: it is not known.
    pub fn address(&self) -> &str {
        let name = "attr.unique.network.ip-address";
        self.variables.get(name).map_or("", String::as_str)
    }

    /// Returns the mounted volume with this name in the group.
    pub fn mounted(&self, name: &str) -> Option<&HostVolume> {
        self.mounted.get(name)
    }

    /// Returns the host volume of this name.
    pub fn volume(&self, name: &str) -> Option<&HostVolume> {
        self.volumes.get(name)
    }
}

/// An unknown variable in a `config` block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: there is no variable ${{{name}}}")]
pub struct UnknownVariable {
    /// The path within the `config` block, as in `args[1]`.
    pub place: String,
    pub name: String,
}

/// One task's environment.
#[derive(Clone, Debug)]
pub struct TaskEnv<'a> {
    node: &'a NodeFacts,
    variables: BTreeMap<String, String>,
}

impl<'a> TaskEnv<'a> {
    /// Collects the runtime variables. The task's own `env` overrides them; devices, tokens and templates add
    /// theirs later and override both.
    ///
    /// `dirs`: the task's view of its directories; `None` on a simulated node.
    pub fn new(
        job: &Job,
        group: &TaskGroup,
        task: &Task,
        alloc: &Allocation,
        node: &'a NodeFacts,
        dirs: Option<&TaskDirs>,
    ) -> Self {
        let mut env = Self {
            node,
            variables: BTreeMap::new(),
        };
        env.add_names(job, group, task, alloc);
        env.add_resources(task, alloc);
        env.add_volumes(group, alloc);
        for meta in [&job.meta, &group.meta, &task.meta] {
            env.add_meta(meta);
        }
        if let Some(dirs) = dirs {
            env.set("NOMAD_ALLOC_DIR", dirs.shared.display().to_string());
            env.set("NOMAD_TASK_DIR", dirs.local.display().to_string());
            env.set("NOMAD_SECRETS_DIR", dirs.secrets.display().to_string());
        }
        // In alphabetical order: a variable can refer to runtime variables and to those sorted
        // before it.
        for (name, value) in &task.env {
            let value = env.interpolate(value);
            env.set(&env.interpolate(name), value);
        }
        // Last, so that `env` cannot override the assigned devices.
        env.add_devices(task, alloc);
        env
    }

    /// Collects the runtime variables of a group, which belong to no task.
    pub fn of_group(job: &Job, group: &TaskGroup, alloc: &Allocation, node: &'a NodeFacts) -> Self {
        let mut env = Self {
            node,
            variables: BTreeMap::new(),
        };
        env.add_alloc(job, group, alloc);
        env.add_group_ports(alloc);
        for meta in [&job.meta, &group.meta] {
            env.add_meta(meta);
        }
        env
    }

    /// Lists the task's device instances per kind, as in `CUDA_VISIBLE_DEVICES`.
    fn add_devices(&mut self, task: &Task, alloc: &Allocation) {
        let node = self.node;
        let mut given = BTreeMap::<&str, Vec<&str>>::new();
        let devices = alloc.resources.devices.iter();
        for device in devices.filter(|device| device.task == task.name) {
            let mut kinds = node.devices.iter();
            let kind = kinds.find(|kind| {
                kind.vendor == device.vendor
                    && kind.device_type == device.device_type
                    && kind.name == device.name
            });
            if let Some(kind) = kind {
                let ids = device.instance_ids.iter().map(String::as_str);
                given.entry(&kind.env).or_default().extend(ids);
            }
        }
        for (name, ids) in given {
            self.set(name, ids.join(","));
        }
    }

    fn add_names(&mut self, job: &Job, group: &TaskGroup, task: &Task, alloc: &Allocation) {
        self.add_alloc(job, group, alloc);
        self.set("NOMAD_TASK_NAME", task.name.clone());
    }

    fn add_alloc(&mut self, job: &Job, group: &TaskGroup, alloc: &Allocation) {
        self.set("NOMAD_ALLOC_ID", alloc.id.to_string());
        self.set("NOMAD_SHORT_ALLOC_ID", alloc.id.short());
        self.set("NOMAD_ALLOC_NAME", alloc.name());
        self.set("NOMAD_ALLOC_INDEX", alloc.name_index.to_string());
        self.set("NOMAD_GROUP_NAME", group.name.clone());
        self.set("NOMAD_JOB_ID", job.id.clone());
        self.set("NOMAD_JOB_NAME", job.name.clone());
        if !job.parent_id.is_empty() {
            self.set("NOMAD_JOB_PARENT_ID", job.parent_id.clone());
        }
        self.set("NOMAD_NAMESPACE", job.namespace.clone());
        self.set("NOMAD_REGION", job.region.clone());
        self.set("NOMAD_DC", self.node.datacenter.clone());
    }

    fn add_resources(&mut self, task: &Task, alloc: &Allocation) {
        let resources = self.node.resource_limits(task, alloc);
        self.set("NOMAD_CPU_LIMIT", resources.cpu_mhz.to_string());
        if !resources.cores.is_empty() {
            self.set("NOMAD_CPU_CORES", core_list::format(&resources.cores));
        }
        self.set("NOMAD_MEMORY_LIMIT", resources.memory_mib.to_string());
        if let MemoryMax::Mib(mib) = resources.memory_max {
            self.set("NOMAD_MEMORY_MAX_LIMIT", mib.to_string());
        }
        // Where labels are equal, the task's own port wins.
        self.add_group_ports(alloc);
        let (own, others): (Vec<_>, Vec<_>) = alloc
            .resources
            .ports
            .iter()
            .filter(|port| !port.task.is_empty())
            .partition(|port| port.is_of(&task.name));
        self.add_ports(own);
        for port in others {
            self.add_port_of_other_task(port);
        }
    }

    fn add_ports<'p>(&mut self, ports: impl IntoIterator<Item = &'p AllocatedPort>) {
        for port in ports {
            let (label, ip) = (&port.label, &port.host_ip);
            let inside = inside_port(port);
            let address = host_address(port);
            self.set_clean("NOMAD_IP_", label, ip.clone());
            self.set_clean("NOMAD_PORT_", label, inside.to_string());
            self.set_clean("NOMAD_ADDR_", label, address.clone());
            self.set_clean("NOMAD_HOST_PORT_", label, port.value.to_string());
            self.set(&format!("NOMAD_HOST_IP_{label}"), ip.clone());
            self.set(&format!("NOMAD_HOST_ADDR_{label}"), address);
            self.set(&format!("NOMAD_ALLOC_PORT_{label}"), inside.to_string());
        }
    }

    /// Sets the group's ports. In a network of its own, the allocation's address and interface besides.
    fn add_group_ports(&mut self, alloc: &Allocation) {
        self.add_ports(alloc.resources.group_ports());
        let Some(network) = self.node.network() else {
            return;
        };
        let ip = network.any_address();
        if ip.is_empty() {
            return;
        }
        for port in alloc.resources.group_ports() {
            let label = &port.label;
            let address = socket_address(ip, inside_port(port));
            self.set(
                &format!("NOMAD_ALLOC_INTERFACE_{label}"),
                network.interface.clone(),
            );
            self.set(&format!("NOMAD_ALLOC_IP_{label}"), ip.to_owned());
            self.set(&format!("NOMAD_ALLOC_ADDR_{label}"), address);
        }
    }

    fn add_port_of_other_task(&mut self, port: &AllocatedPort) {
        let label = format!("{}_{}", port.task, port.label);
        self.set_clean("NOMAD_IP_", &label, port.host_ip.clone());
        self.set_clean("NOMAD_PORT_", &label, inside_port(port).to_string());
        self.set_clean("NOMAD_ADDR_", &label, host_address(port));
    }

    /// Sets the paths of the group's volumes. Not a variable of Nomad's: a task without mounts finds
    /// its volumes by it.
    fn add_volumes(&mut self, group: &TaskGroup, alloc: &Allocation) {
        for (name, request) in &group.volumes {
            let volume = if request.is_csi() {
                self.node.mounted(name)
            } else {
                self.node.volume(&request.source_for(alloc.name_index))
            };
            if let Some(path) = volume.map(|volume| volume.path.clone()) {
                self.set_clean("KAFILA_VOLUME_", name, path);
            }
        }
    }

    fn add_meta(&mut self, meta: &BTreeMap<String, String>) {
        for (key, value) in meta {
            self.set_clean("NOMAD_META_", key, value.clone());
            self.set_clean("NOMAD_META_", &key.to_uppercase(), value.clone());
        }
    }

    fn set(&mut self, name: &str, value: String) {
        self.variables.insert(name.to_owned(), value);
    }

    /// Sets a variable whose name is cleaned: other characters than letters, digits and `_` become `_`.
    fn set_clean(&mut self, family: &str, label: &str, value: String) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let label: String = label
            .chars()
            .map(|c| if is_plain(c) { c } else { '_' })
            .collect();
        self.set(&format!("{family}{label}"), value);
    }

    /// Returns what templates see: the variables, and the values of `attr.…`, `meta.…` and `node.…`.
    pub fn for_templates(&self) -> BTreeMap<String, String> {
        let mut all = self.node.variables.clone();
        all.extend(self.variables.clone());
        all
    }

    /// Adds the variables of templates, which override all others.
    pub fn extend(&mut self, variables: BTreeMap<String, String>) {
        self.variables.extend(variables);
    }

    /// Returns name → value.
    pub fn into_variables(self) -> BTreeMap<String, String> {
        self.variables
    }

    /// Replaces every known `${…}` and leaves unknown ones unchanged.
    pub fn interpolate(&self, text: &str) -> String {
        self.replace(text, |_| None).0
    }

    /// Replaces every `${…}` in a driver's configuration.
    ///
    /// # Errors
    /// The first unknown variable.
    pub fn interpolate_config(
        &self,
        config: &Map<String, Value>,
    ) -> Result<Map<String, Value>, UnknownVariable> {
        let mut result = Map::new();
        for (key, value) in config {
            result.insert(key.clone(), self.interpolate_value(key, value)?);
        }
        Ok(result)
    }

    fn interpolate_value(&self, place: &str, value: &Value) -> Result<Value, UnknownVariable> {
        Ok(match value {
            Value::String(text) => {
                let mut unknown = None;
                let (text, _) = self.replace(text, |name| {
                    unknown.get_or_insert_with(|| name.to_owned());
                    None
                });
                if let Some(name) = unknown {
                    return Err(UnknownVariable {
                        place: place.to_owned(),
                        name,
                    });
                }
                Value::String(text)
            }
            Value::Array(items) => {
                let mut result = Vec::new();
                for (position, item) in items.iter().enumerate() {
                    result.push(self.interpolate_value(&format!("{place}[{position}]"), item)?);
                }
                Value::Array(result)
            }
            Value::Object(fields) => {
                let mut result = Map::new();
                for (key, field) in fields {
                    let value = self.interpolate_value(&format!("{place}.{key}"), field)?;
                    result.insert(key.clone(), value);
                }
                Value::Object(result)
            }
            other => other.clone(),
        })
    }

    /// Replaces `${name}`; `$${name}` stands for a literal `${name}`. `otherwise` is called with
    /// unknown names. Returns the text, and whether anything was replaced.
    fn replace(
        &self,
        text: &str,
        mut otherwise: impl FnMut(&str) -> Option<String>,
    ) -> (String, bool) {
        let mut result = String::with_capacity(text.len());
        let mut is_changed = false;
        let mut rest = text;
        while let Some(begin) = rest.find("${") {
            let Some(length) = rest[begin..].find('}') else {
                break;
            };
            let (before, reference) = (&rest[..begin], &rest[begin..=begin + length]);
            rest = &rest[begin + length + 1..];
            if let Some(before) = before.strip_suffix('$') {
                result.push_str(before);
                result.push_str(reference);
                is_changed = true;
                continue;
            }
            result.push_str(before);
            let name = reference[2..reference.len() - 1].trim();
            match self
                .get(name)
                .map(str::to_owned)
                .or_else(|| otherwise(name))
            {
                Some(value) => {
                    result.push_str(&value);
                    is_changed = true;
                }
                None => result.push_str(reference),
            }
        }
        result.push_str(rest);
        (result, is_changed)
    }

    /// Looks up `NAME`, `env["NAME"]`, `attr.x`, `meta.x` or `node.x`.
    fn get(&self, name: &str) -> Option<&str> {
        let quoted = name
            .strip_prefix("env[\"")
            .and_then(|rest| rest.strip_suffix("\"]"));
        if let Some(name) = quoted {
            return self.variables.get(name).map(String::as_str);
        }
        let found = self
            .variables
            .get(name)
            .or_else(|| self.node.variables.get(name));
        found.map(String::as_str)
    }
}

/// Returns the port inside the task's network.
fn inside_port(port: &AllocatedPort) -> u16 {
    if port.to > 0 { port.to } else { port.value }
}

/// Returns the port's address on the host; one of IPv6 in brackets.
fn host_address(port: &AllocatedPort) -> String {
    socket_address(&port.host_ip, port.value)
}

fn socket_address(ip: &str, port: u16) -> String {
    match ip.parse() {
        Ok(ip) => SocketAddr::new(ip, port).to_string(),
        Err(_) => format!("{ip}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    fn facts() -> NodeFacts {
        NodeFacts {
            variables: env(&[("attr.kernel.name", "linux"), ("node.datacenter", "dc1")]),
            datacenter: "dc1".to_owned(),
            ..NodeFacts::default()
        }
    }

    #[test]
    fn references_are_replaced_and_unknown_ones_stay() {
        let node = facts();
        let env = TaskEnv {
            node: &node,
            variables: env(&[("NOMAD_TASK_NAME", "web"), ("A-B", "x")]),
        };
        for (text, want) in [
            ("plain", "plain"),
            ("${NOMAD_TASK_NAME}.log", "web.log"),
            ("${ NOMAD_TASK_NAME }", "web"),
            ("${env[\"A-B\"]}", "x"),
            ("${attr.kernel.name}-${node.datacenter}", "linux-dc1"),
            (
                "${attr.nothing} and ${NOMAD_TASK_NAME}",
                "${attr.nothing} and web",
            ),
            ("$${NOMAD_TASK_NAME}", "${NOMAD_TASK_NAME}"),
            ("${unclosed", "${unclosed"),
            ("$HOME ${}", "$HOME ${}"),
        ] {
            assert_eq!(env.interpolate(text), want, "{text}");
        }
    }

    #[test]
    fn an_unknown_variable_in_a_drivers_configuration_is_an_error_that_names_its_place() {
        let node = facts();
        let env = TaskEnv {
            node: &node,
            variables: env(&[("NOMAD_PORT_http", "80")]),
        };
        let good = serde_json::json!({
            "command": "serve", "args": ["-p", "${NOMAD_PORT_http}"], "retries": 3
        });
        let done = env.interpolate_config(good.as_object().unwrap()).unwrap();
        assert_eq!(done["args"][1], "80");
        assert_eq!(done["retries"], 3);
        let bad = serde_json::json!({"args": ["ok", {"x": "${NOMAD_PORT_htp}"}]});
        let error = env
            .interpolate_config(bad.as_object().unwrap())
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "args[1].x: there is no variable ${NOMAD_PORT_htp}"
        );
    }
}
