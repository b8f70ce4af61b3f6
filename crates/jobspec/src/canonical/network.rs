//! Networks of a group and of its tasks: ports by label, static or chosen by the scheduler.

use std::collections::BTreeMap;

use model::job::{Dns, Network, Port, Task};
use model::node::DEFAULT_HOST_NETWORK;

use super::validation::{Path, Validation};

const MAX_PORT: i64 = 65_535;
/// Source: the kernel's limit of a host name, 64, without its final zero.
const MAX_HOSTNAME: usize = 63;

pub(super) fn networks(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::Network],
) -> Vec<Network> {
    let mut used = Used::default();
    let mut networks = Vec::with_capacity(specs.len());
    for (position, spec) in specs.iter().enumerate() {
        let path = path.at("network", position);
        if spec.mbits.is_some_and(|mbits| mbits != 0) {
            check.warn("mbits in a network block is deprecated and ignored: remove it");
        }
        let mode = mode(check, &path, spec);
        let network = network(check, &path, spec, mode, DEFAULT_HOST_NETWORK);
        check_settings(check, &path, &network);
        used.add(check, &path, &network, "");
        networks.push(network);
    }
    networks
}

/// Reads the networks of a task's resources. Their ports are the node's own, whatever mode they name.
pub(super) fn of_task(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::Network],
    task: &str,
) -> Vec<Network> {
    if !specs.is_empty() {
        check.warn(format!(
            "Task {task:?}: the network block in resources is deprecated: write it in the group"
        ));
    }
    let read = |(position, spec): (usize, &job_fields::Network)| {
        let mode = spec.mode.clone().unwrap_or_default();
        network(check, &path.at("network", position), spec, mode, "")
    };
    specs.iter().enumerate().map(read).collect()
}

/// Refuses ports of tasks that collide: a label with one of the group or of the same task, a static
/// port with any other.
pub(super) fn check_tasks(check: &mut Validation, path: &Path, group: &[Network], tasks: &[Task]) {
    let mut used = Used::default();
    for (position, network) in group.iter().enumerate() {
        used.remember(&path.at("network", position), network, "");
    }
    for task in tasks {
        let path = path.labelled("task", Some(&task.name), 0);
        let path = path.block("resources");
        for (position, network) in task.resources.networks.iter().enumerate() {
            used.add(check, &path.at("network", position), network, &task.name);
        }
    }
}

/// Labels and static ports of the networks before.
#[derive(Default)]
struct Used {
    /// (Task or empty for the group, label) → field.
    labels: BTreeMap<(String, String), String>,
    /// (Host network, port) → label.
    fixed: BTreeMap<(String, u16), String>,
}

impl Used {
    /// Adds the ports of `network`, of a task or (empty) of the group, and reports what is in use.
    fn add(&mut self, check: &mut Validation, path: &Path, network: &Network, task: &str) {
        for port in &network.ports {
            let field = path.labelled("port", Some(&port.label), 0);
            let of = |owner: &str| self.labels.get(&(owner.to_owned(), port.label.clone()));
            if let Some(earlier) = of(task).or_else(|| of("")) {
                let message = format!(
                    "Port label {} already in use by {earlier}: rename it",
                    port.label
                );
                check.error(&field, message);
            }
            let number = port.static_port.map(|number| (number, fixed(port, number)));
            if let Some((number, key)) = number
                && let Some(earlier) = self.fixed.get(&key)
            {
                let message = format!(
                    "Static port {number} already reserved by {earlier}: choose another port, or \
                     leave static out for a dynamic one",
                );
                check.error(field.field("static"), message);
            }
            self.insert(port, &field, task);
        }
    }

    /// Adds ports that were checked before.
    fn remember(&mut self, path: &Path, network: &Network, task: &str) {
        for port in &network.ports {
            self.insert(port, &path.labelled("port", Some(&port.label), 0), task);
        }
    }

    fn insert(&mut self, port: &Port, field: &Path, task: &str) {
        let key = (task.to_owned(), port.label.clone());
        self.labels.insert(key, field.to_string());
        if let Some(number) = port.static_port {
            self.fixed.insert(fixed(port, number), port.label.clone());
        }
    }
}

fn fixed(port: &Port, number: u16) -> (String, u16) {
    let network = match port.host_network.as_str() {
        "" => DEFAULT_HOST_NETWORK,
        named => named,
    };
    (network.to_owned(), number)
}

fn mode(check: &mut Validation, path: &Path, spec: &job_fields::Network) -> String {
    let mode = spec.mode.as_deref().filter(|mode| !mode.is_empty());
    let mode = mode.unwrap_or("host");
    let problem = match (mode, mode.strip_prefix("cni/")) {
        ("host" | "bridge" | "none", _) => None,
        (_, Some("")) => Some(format!(
            "network mode {mode:?} names no network: use mode = \"cni/<name>\", with the name in a file of \
             the nodes' network.cni_config_dir"
        )),
        (_, Some(name)) if name.contains('/') => Some(format!(
            "network mode {mode:?}: the name of a network has no \"/\""
        )),
        (_, Some(_)) => None,
        (_, None) => Some(format!(
            "unknown network mode {mode:?}: use \"host\", \"bridge\", \"none\" or \"cni/<name>\""
        )),
    };
    if let Some(problem) = problem {
        check.error(path.field("mode"), problem);
        return "host".to_owned();
    }
    mode.to_owned()
}

/// Checks the settings of a group's own network.
fn check_settings(check: &mut Validation, path: &Path, network: &Network) {
    let hostname = &network.hostname;
    // References are replaced on the node, which checks the result.
    if !hostname.is_empty() && !hostname.contains("${") && !is_host_name(hostname) {
        let message = format!(
            "Hostname is not a valid DNS name: {hostname:?}; use letters, digits, '-' and '.', at most \
             {MAX_HOSTNAME} characters"
        );
        check.error(path.field("hostname"), message);
    }
    let has_own = network.mode != "host";
    let settings = [
        ("hostname", !hostname.is_empty()),
        ("dns", network.dns.is_some()),
        ("cni", !network.cni_args.is_empty()),
    ];
    for (name, _) in settings.iter().filter(|(_, is_set)| *is_set && !has_own) {
        check.warn(format!(
            "{}: without effect in mode \"host\", in which tasks use the node's own network",
            path.field(name)
        ));
    }
}

/// Source: the lengths of RFC 1123; the kernel's limit of a host name is one more.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    name.len() <= MAX_HOSTNAME && name.split('.').all(is_label)
}

fn network(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Network,
    mode: String,
    default_network: &str,
) -> Network {
    let mut ports = Vec::new();
    // Fixed ports first, so that the order does not depend on how the job was sent.
    for (position, port) in spec.reserved_ports.iter().enumerate() {
        ports.push(self::port(
            check,
            path,
            port,
            position,
            (true, default_network),
        ));
    }
    for (position, port) in spec.dynamic_ports.iter().enumerate() {
        ports.push(self::port(
            check,
            path,
            port,
            position,
            (false, default_network),
        ));
    }
    Network {
        mode,
        ports,
        mbits: spec.mbits.and_then(|mbits| u32::try_from(mbits).ok()),
        hostname: spec.hostname.clone().unwrap_or_default(),
        dns: spec.dns.as_ref().map(|dns| Dns {
            servers: dns.servers.clone(),
            searches: dns.searches.clone(),
            options: dns.options.clone(),
        }),
        cni_args: spec
            .cni
            .as_ref()
            .map(|cni| cni.args.clone())
            .unwrap_or_default(),
    }
}

fn port(
    check: &mut Validation,
    path: &Path,
    spec: &job_fields::Port,
    position: usize,
    (reserved, default_network): (bool, &str),
) -> Port {
    let label = spec.label.clone().unwrap_or_default();
    let path = path.labelled("port", spec.label.as_deref(), position);
    if label.is_empty() {
        check.error(
            &path,
            "Missing port label: write it as in port \"http\" { … }",
        );
    }
    let value = spec.value.unwrap_or(0);
    let static_port = if reserved {
        let number = number(check, &path, "static", &label, value);
        if number.is_none() && (0..=MAX_PORT).contains(&value) {
            let message = "a static port must be between 1 and 65535: leave static out for a \
                           dynamic port";
            check.error(path.field("static"), message);
        }
        number
    } else {
        None
    };
    // −1 is the long way to say "the same as on the host".
    let to = spec.to.filter(|to| *to != -1).unwrap_or(0);
    let ignore_collision = spec.ignore_collision.unwrap_or(false);
    if ignore_collision && !reserved {
        let message = "only a static port can ignore collisions: write static = …, or leave \
                       ignore_collision out, the scheduler chooses a port that is free";
        check.error(path.field("ignore_collision"), message);
    }
    let host_network = spec.host_network.as_deref().filter(|name| !name.is_empty());
    Port {
        static_port,
        to: number(check, &path, "to", &label, to),
        host_network: host_network.unwrap_or(default_network).to_owned(),
        ignore_collision,
        label,
    }
}

/// Returns the port; 0 is none, and an invalid port is an error.
fn number(check: &mut Validation, path: &Path, name: &str, label: &str, port: i64) -> Option<u16> {
    if port > MAX_PORT {
        let message = format!(
            "Port {label} ({port}) cannot be greater than {MAX_PORT}: choose a lower {name}",
        );
        check.error(path.field(name), message);
    } else if port < 0 {
        let message = format!("Port {label} ({port}) cannot be negative: leave {name} out");
        check.error(path.field(name), message);
    }
    u16::try_from(port).ok().filter(|port| *port != 0)
}
