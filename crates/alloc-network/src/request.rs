//! A plugin's input: its configuration with the network's name, runtime values and the result so far.
//! No I/O.

use serde_json::{Map, Value, json};

use crate::conflist::{ConfList, has_capability};
use crate::plan::Plan;

/// Returns the standard input of one plugin. Source: the specification of CNI, "Deriving execution
/// configuration".
pub(crate) fn input(
    list: &ConfList,
    plugin: &Value,
    plan: &Plan,
    previous: Option<&Value>,
) -> Value {
    let mut input = plugin.as_object().cloned().unwrap_or_default();
    input.insert("name".to_owned(), json!(list.name));
    input.insert("cniVersion".to_owned(), json!(list.version));
    let mut runtime = Map::new();
    for (capability, value) in [("portMappings", port_mappings(plan)), ("dns", dns(plan))] {
        if has_capability(plugin, capability) {
            runtime.insert(capability.to_owned(), value);
        }
    }
    if !runtime.is_empty() {
        input.insert("runtimeConfig".to_owned(), runtime.into());
    }
    if let Some(previous) = previous {
        input.insert("prevResult".to_owned(), previous.clone());
    }
    input.into()
}

fn port_mappings(plan: &Plan) -> Value {
    let both = |port: &crate::plan::PortMapping| {
        let host_ip = port.host_ip;
        ["tcp", "udp"].map(|protocol| {
            let mut mapping = json!({
                "hostPort": port.host_port,
                "containerPort": port.to,
                "protocol": protocol,
            });
            if let Some(host_ip) = host_ip {
                mapping["hostIP"] = json!(host_ip);
            }
            mapping
        })
    };
    plan.ports.iter().flat_map(both).collect()
}

fn dns(plan: &Plan) -> Value {
    let dns = &plan.dns;
    json!({"servers": dns.servers, "searches": dns.searches, "options": dns.options})
}
