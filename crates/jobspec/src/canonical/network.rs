//! A group's network: ports by label, fixed or chosen by the scheduler.

use std::collections::BTreeMap;

use model::job::{Network, Port};
use model::node::DEFAULT_HOST_NETWORK;

use super::check::{Check, Path};

const MAX_PORT: i64 = 65_535;

pub(super) fn networks(check: &mut Check, path: &Path, specs: &[spec::Network]) -> Vec<Network> {
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    let mut fixed: BTreeMap<(String, u16), String> = BTreeMap::new();
    let mut networks = Vec::with_capacity(specs.len());
    for (position, spec) in specs.iter().enumerate() {
        let path = path.at("network", position);
        let network = network(check, &path, spec);
        for port in &network.ports {
            let field = path.labelled("port", Some(&port.label), 0);
            if let Some(earlier) = labels.insert(port.label.clone(), field.to_string()) {
                let message = format!(
                    "Port label {} already in use by {earlier}: rename it",
                    port.label
                );
                check.error(&field, message);
            }
            let Some(number) = port.static_port else {
                continue;
            };
            let key = (port.host_network.clone(), number);
            if let Some(earlier) = fixed.insert(key, port.label.clone()) {
                let message = format!(
                    "Static port {number} already reserved by {earlier}: choose another port, or \
                     leave static out for a dynamic one",
                );
                check.error(field.field("static"), message);
            }
        }
        networks.push(network);
    }
    networks
}

fn network(check: &mut Check, path: &Path, spec: &spec::Network) -> Network {
    if spec.mbits.is_some_and(|mbits| mbits != 0) {
        check.warn("mbits in a network block is deprecated and ignored: remove it");
    }
    let mode = spec
        .mode
        .as_deref()
        .filter(|mode| !mode.is_empty())
        .unwrap_or("host");
    if mode != "host" {
        let known = matches!(mode, "none" | "bridge") || mode.starts_with("cni/");
        let message = if known {
            format!(
                "network mode {mode:?} is not supported by this version of Kafila: use \
                 mode = \"host\", in which tasks listen on the node's own ports",
            )
        } else {
            format!("unknown network mode {mode:?}: use mode = \"host\"")
        };
        check.error(path.field("mode"), message);
    }
    let mut ports = Vec::new();
    // Fixed ports first, so that the order does not depend on how the job was sent.
    for (position, port) in spec.reserved_ports.iter().enumerate() {
        ports.push(self::port(check, path, port, position, true));
    }
    for (position, port) in spec.dynamic_ports.iter().enumerate() {
        ports.push(self::port(check, path, port, position, false));
    }
    Network {
        mode: "host".to_owned(),
        ports,
    }
}

fn port(
    check: &mut Check,
    path: &Path,
    spec: &spec::Port,
    position: usize,
    reserved: bool,
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
        host_network: host_network.unwrap_or(DEFAULT_HOST_NETWORK).to_owned(),
        ignore_collision,
        label,
    }
}

/// Returns the port; 0 is none, and an invalid port is an error.
fn number(check: &mut Check, path: &Path, name: &str, label: &str, port: i64) -> Option<u16> {
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
