//! Network of a container: its mode, published ports and address.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use bollard::models::{
    EndpointIpamConfig, EndpointSettings, NetworkingConfig, PortBinding, PortMap,
};
use model::AllocatedPort;
use task_drivers::TaskConfig;

use super::parts::{some, text};
use crate::options::Options;

/// The engine's own default network.
const DEFAULT_MODE: &str = "default";

pub(super) fn mode(options: &Options) -> String {
    text(&options.network_mode).unwrap_or_else(|| DEFAULT_MODE.to_owned())
}

/// Returns the servers that are addresses; the engine takes no names, which are left out. Source:
/// Nomad 2.0 behaviour.
pub(super) fn dns_servers(options: &Options) -> Vec<String> {
    let is_address = |server: &&String| server.parse::<IpAddr>().is_ok();
    let servers = options.dns_servers.iter();
    servers.filter(is_address).cloned().collect()
}

#[derive(Default)]
pub(super) struct Ports {
    /// As in `80/tcp`.
    pub(super) exposed: Vec<String>,
    pub(super) bindings: PortMap,
}

/// Publishes the ports that `ports` names, or those that the old `port_map` maps, for TCP and UDP; without
/// `ports` also all of the task's own, which are those of its resources.
pub(super) fn ports(task: &TaskConfig, options: &Options) -> Result<Ports, String> {
    let find = |label: &str| task.ports.iter().find(|port| port.label == label);
    if !options.ports.is_empty() && !options.port_map.is_empty() {
        return Err("options ports and port_map exclude each other: use ports".to_owned());
    }
    // Port inside the container → ports of the host.
    let mut published: BTreeMap<u16, Vec<&AllocatedPort>> = BTreeMap::new();
    for label in &options.ports {
        let port = find(label).ok_or_else(|| {
            format!(
                "option ports: the group has no port {label:?}: add port {label:?} {{}} to its \
                 network block"
            )
        })?;
        let inside = if port.to > 0 { port.to } else { port.value };
        published.entry(inside).or_default().push(port);
    }
    for (label, inside) in &options.port_map {
        let inside: u16 = inside.parse().map_err(|_| {
            format!("option port_map: {inside:?} of {label:?} is not a valid port: want 1 to 65535")
        })?;
        // Labels without a port are left out. Source: Nomad 2.0 behaviour.
        if let Some(port) = find(label) {
            published.entry(inside).or_default().push(port);
        }
    }
    if options.ports.is_empty() {
        let own = task.ports.iter().filter(|port| port.is_of(&task.id.task));
        for port in own.filter(|port| !options.port_map.contains_key(&port.label)) {
            published.entry(port.to).or_default().push(port);
        }
    }
    let mut result = Ports::default();
    for (inside, hosts) in published {
        for protocol in ["tcp", "udp"] {
            let name = format!("{inside}/{protocol}");
            let bindings = hosts.iter().map(|host| PortBinding {
                host_ip: text(&host.host_ip),
                host_port: Some(host.value.to_string()),
            });
            result
                .bindings
                .insert(name.clone(), Some(bindings.collect()));
            result.exposed.push(name);
        }
    }
    Ok(result)
}

/// Returns the container's address and names in its network, if it asks for some.
pub(super) fn endpoint(options: &Options) -> Option<NetworkingConfig> {
    let (ipv4, ipv6) = (text(&options.ipv4_address), text(&options.ipv6_address));
    let has_address = ipv4.is_some() || ipv6.is_some();
    let settings = EndpointSettings {
        ipam_config: has_address.then(|| EndpointIpamConfig {
            ipv4_address: ipv4,
            ipv6_address: ipv6,
            ..EndpointIpamConfig::default()
        }),
        aliases: some(options.network_aliases.clone()),
        mac_address: text(&options.mac_address),
        ..EndpointSettings::default()
    };
    (settings != EndpointSettings::default()).then(|| NetworkingConfig {
        endpoints_config: Some(HashMap::from([(mode(options), settings)])),
    })
}
