//! The node's attributes of Consul, from its agent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use consul::Client;
use consul::agent::AgentSelf;
use tracing::{info, warn};

/// Time for one probe: the node's agent starts while Consul is down, and other probes wait for this one.
const LIMIT: Duration = Duration::from_secs(3);
/// Interval of the probes until the first answer. Source: Nomad's public behaviour.
const FIRST_INTERVAL: Duration = Duration::from_secs(15);

/// The attributes as last probed. Cheap to clone.
///
/// They stay through an outage: a node whose attributes came and went would be evaluated again and again,
/// and its services are registered once Consul is back.
#[derive(Clone, Debug)]
pub struct Probe {
    client: Client,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    attributes: BTreeMap<String, String>,
    /// The last probe has failed.
    is_down: bool,
}

impl Probe {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            known: Arc::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the agent for its facts.
    pub async fn refresh(&self) {
        let found = tokio::time::timeout(LIMIT, self.client.agent_self()).await;
        let found = match found {
            Ok(Ok(about)) => Ok(attributes(&about)),
            Ok(Err(failure)) => Err(failure.to_string()),
            Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
        };
        let mut known = self.known();
        match found {
            Ok(found) => {
                if known.is_down || known.attributes.is_empty() {
                    info!("Consul is reached");
                }
                known.attributes = found;
                known.is_down = false;
            }
            Err(reason) => {
                if !known.is_down {
                    warn!(reason, "Consul is not reached");
                }
                known.is_down = true;
            }
        }
    }

    pub fn attributes(&self) -> BTreeMap<String, String> {
        self.known().attributes.clone()
    }

    /// The time until the next probe: `usual`, and less before the first answer. `jitter` (0 to 1) takes up to
    /// a tenth off, so that the nodes of a cluster do not ask at once.
    pub fn interval(&self, usual: Duration, jitter: f64) -> Duration {
        let is_known = !self.known().attributes.is_empty();
        let interval = if is_known {
            usual
        } else {
            usual.min(FIRST_INTERVAL)
        };
        interval.mul_f64(1.0 - 0.1 * jitter.clamp(0.0, 1.0))
    }
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
    async fn the_attributes_stay_through_an_outage() {
        let mut consul = Consul::start().await;
        consul.stop();
        let config = ConsulConfig {
            address: consul.address(),
            ..ConsulConfig::default()
        };
        let probe = Probe::new(Client::open(&config).unwrap());
        probe.refresh().await;
        assert!(probe.attributes().is_empty());
        let minute = Duration::from_secs(60);
        assert_eq!(probe.interval(minute, 0.0), FIRST_INTERVAL);
        consul.serve().await;
        probe.refresh().await;
        let found = probe.attributes();
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
        assert_eq!(probe.interval(minute, 0.0), minute);
        consul.stop();
        probe.refresh().await;
        assert_eq!(probe.attributes(), found);
    }
}
