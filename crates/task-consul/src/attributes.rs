//! The node's attributes of Consul, from its agent.

use std::collections::BTreeMap;

use consul::Client;
use consul::agent::AgentSelf;

/// Asks the agent for its facts, once.
///
/// # Errors
/// The reason why there are none.
pub async fn read(client: &Client) -> Result<BTreeMap<String, String>, String> {
    let about = client.agent_self().await;
    about
        .map(|about| attributes(&about))
        .map_err(|failure| failure.to_string())
}

/// Source: Nomad's attributes.
fn attributes(about: &AgentSelf) -> BTreeMap<String, String> {
    let config = &about.config;
    let is_enterprise = config.version.contains("+ent");
    let mut attributes = BTreeMap::new();
    let mut set = |name: &str, value: &str| {
        if !value.is_empty() {
            attributes.insert(name.to_owned(), value.to_owned());
        }
    };
    set("consul.version", &config.version);
    set("consul.revision", &config.revision);
    set(
        "consul.server",
        if config.server { "true" } else { "false" },
    );
    set("consul.sku", if is_enterprise { "ent" } else { "oss" });
    set(
        "consul.ft.namespaces",
        if is_enterprise { "true" } else { "false" },
    );
    set("consul.datacenter", &config.datacenter);
    set("consul.segment", &about.debug_config.segment_name);
    set("consul.partition", &config.partition);
    set("unique.consul.name", &config.node_name);
    let debug = &about.debug_config;
    set(
        "consul.connect",
        if debug.connect_enabled {
            "true"
        } else {
            "false"
        },
    );
    for (name, port) in [
        ("consul.grpc", debug.grpc_port),
        ("consul.dns.port", debug.dns_port),
    ] {
        // -1: the agent does not listen.
        if port > 0 {
            set(name, &port.to_string());
        }
    }
    attributes
}

#[cfg(test)]
mod tests {
    use consul::ConsulConfig;
    use consul_test_kit::Consul;

    use super::*;

    #[tokio::test]
    async fn an_agent_gives_its_facts() {
        let mut consul = Consul::start().await;
        let config = ConsulConfig {
            address: consul.address(),
            ..ConsulConfig::default()
        };
        let client = Client::open(&config).unwrap();
        let found = read(&client).await.unwrap();
        for (name, value) in [
            ("consul.version", "1.17.1"),
            ("consul.datacenter", "dc1"),
            ("consul.server", "true"),
            ("consul.sku", "oss"),
            ("consul.connect", "true"),
            ("consul.grpc", "8502"),
            ("unique.consul.name", "consul-test"),
        ] {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
        }
        consul.stop();
        let problem = read(&client).await.unwrap_err();
        assert!(problem.contains("cannot be reached"), "{problem}");
    }
}
