//! Probe of the engine, and removal of containers that no record names; unused images: `image_removal`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bollard::models::NetworkInspect;
use task_drivers::Fingerprint;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use crate::access::enters_private;
use crate::container;
use crate::engine::Problem;
use crate::podman;
use crate::settings::EngineKind;
use crate::tasks::Docker;

/// Timeout of a probe. A healthy engine takes milliseconds.
const PROBE_LIMIT: Duration = Duration::from_secs(20);
/// Timeout of the removal of images at one probe. The engine takes seconds for a large one.
const REMOVAL_LIMIT: Duration = Duration::from_secs(60);

impl Docker {
    /// Asks the engine for its version, and removes dangling containers and unused images.
    pub(crate) async fn probe(&self) {
        if !self.settings.config.enabled {
            return;
        }
        // The engine may have been replaced since.
        self.engine.reset();
        let probed = timeout(PROBE_LIMIT, self.attributes()).await;
        let probed = probed.unwrap_or_else(|_| {
            let message = format!("no answer within {PROBE_LIMIT:?}");
            Err(Problem::Unreachable(message))
        });
        let found = match probed {
            Ok(attributes) => Fingerprint {
                detected: true,
                healthy: true,
                description: "Healthy".to_owned(),
                attributes,
            },
            Err(problem) => self.unreachable(&problem),
        };
        let is_healthy = found.healthy;
        self.set_fingerprint(found);
        if !is_healthy {
            return;
        }
        if timeout(PROBE_LIMIT, self.remove_dangling()).await.is_err() {
            warn!("the engine does not list its containers in time");
        }
        if timeout(REMOVAL_LIMIT, self.remove_unused_images())
            .await
            .is_err()
        {
            warn!("the engine does not remove unused images in time; the next probe goes on");
        }
    }

    /// An engine that answered before is unhealthy, because its tasks may still run; on a machine
    /// without one the driver is not detected.
    fn unreachable(&self, problem: &Problem) -> Fingerprint {
        let before = self.last_fingerprint();
        let socket = self.engine.socket();
        let description = if socket.exists() {
            problem.to_string()
        } else {
            let title = self.settings.engine_kind.title();
            format!("no {title} socket at {}", socket.display())
        };
        Fingerprint {
            detected: before.detected,
            healthy: false,
            description,
            attributes: before.attributes,
        }
    }

    async fn attributes(&self) -> Result<BTreeMap<String, String>, Problem> {
        let client = self.engine.client().await?;
        let (version, about) = (client.version().await?, client.info().await?);
        let security = about.security_options.as_deref().unwrap_or_default();
        let enters = enters_private(security, self.engine.socket());
        self.enters_private.store(enters, Ordering::Relaxed);
        let kind = self.settings.engine_kind;
        if kind == EngineKind::Podman {
            let version = version.version.unwrap_or_default();
            let attributes = podman::attributes(version, &about, &self.settings.config);
            return Ok(attributes);
        }
        let mut runtimes: Vec<String> = about.runtimes.unwrap_or_default().into_keys().collect();
        runtimes.sort();
        let flag = |flag: bool| if flag { "true" } else { "" }.to_owned();
        let attributes = [
            ("", "1".to_owned()),
            (".version", version.version.unwrap_or_default()),
            (".os_type", about.os_type.unwrap_or_default()),
            (".runtimes", runtimes.join(",")),
            (
                ".privileged.enabled",
                flag(self.settings.config.allow_privileged),
            ),
            (".volumes.enabled", flag(self.settings.config.volumes)),
            (".bridge_ip", bridge_ip(&client).await.unwrap_or_default()),
        ];
        Ok(attributes
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (format!("driver.{}{name}", kind.name()), value))
            .collect())
    }

    /// Removes this node's containers without a record: their agent lost its records, or died while it
    /// removed them.
    async fn remove_dangling(&self) {
        let Some(grace) = self.settings.dangling_grace() else {
            return;
        };
        let listed = match self.engine.list(&self.settings.node_id).await {
            Ok(listed) => listed,
            Err(problem) => {
                warn!(%problem, "cannot list the engine's containers");
                return;
            }
        };
        let now = jiff::Timestamp::now().as_second();
        let grace = i64::try_from(grace.as_secs()).unwrap_or(i64::MAX);
        for found in listed {
            let is_old = found.created.is_some_and(|created| now - created > grace);
            let task = container::task_id(&found.labels.unwrap_or_default());
            let (Some(id), Some(container)) = (task, found.id) else {
                continue;
            };
            if !is_old || self.records.has(&id) {
                continue;
            }
            info!(%id, container, "removing a container without a record");
            if let Err(problem) = self.engine.remove(&container, true).await {
                warn!(%id, %problem, "cannot remove a container without a record");
            }
        }
    }
}

/// The engine's own network, in which containers without another one are.
const BRIDGE: &str = "bridge";

/// Returns the engine's address on its bridge; `None` for an engine without a bridge.
async fn bridge_ip(client: &bollard::Docker) -> Option<String> {
    match client.inspect_network(BRIDGE, None).await {
        Ok(network) => gateway(network),
        Err(error) => {
            debug!(%error, "cannot inspect the engine's bridge");
            None
        }
    }
}

/// A bridge of two families lists its IPv4 network first. An engine that has made its bridge itself lists no
/// gateway until its next start; its address is the first one of the subnet, then.
fn gateway(network: NetworkInspect) -> Option<String> {
    let networks = network.ipam.and_then(|ipam| ipam.config);
    networks.into_iter().flatten().find_map(|network| {
        let listed = network.gateway.filter(|gateway| !gateway.is_empty());
        listed.or_else(|| first_address(&network.subnet?))
    })
}

/// Returns the first address of an IPv4 subnet such as `172.17.0.0/16`.
fn first_address(subnet: &str) -> Option<String> {
    let (address, bits) = subnet.split_once('/')?;
    let (address, bits) = (address.parse::<Ipv4Addr>().ok()?, bits.parse::<u32>().ok()?);
    let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
    let first = (address.to_bits() & mask).checked_add(1)?;
    Some(Ipv4Addr::from_bits(first).to_string())
}

#[cfg(test)]
mod tests {
    use bollard::models::{Ipam, IpamConfig};

    use super::*;

    #[test]
    fn the_gateway_of_a_bridge_is_its_first_listed_or_else_the_first_address() {
        for (networks, expected) in [
            (
                [("172.17.0.0/16", "172.17.0.1"), ("fd00::/64", "fd00::1")],
                Some("172.17.0.1"),
            ),
            ([("10.9.8.7/24", ""), ("", "")], Some("10.9.8.1")),
            ([("", ""), ("10.0.0.0/8", "10.0.0.9")], Some("10.0.0.9")),
            ([("fd00::/64", ""), ("10.0.0.0/33", "")], None),
            ([("", ""), ("10.0.0.0", "")], None),
            ([("0.0.0.0/0", ""), ("", "")], Some("0.0.0.1")),
            ([("255.255.255.255/32", ""), ("", "")], None),
        ] {
            let config = networks.map(|(subnet, gateway)| IpamConfig {
                subnet: Some(subnet.to_owned()),
                gateway: Some(gateway.to_owned()),
                ..IpamConfig::default()
            });
            let network = NetworkInspect {
                ipam: Some(Ipam {
                    config: Some(config.into()),
                    ..Ipam::default()
                }),
                ..NetworkInspect::default()
            };
            assert_eq!(gateway(network).as_deref(), expected, "{networks:?}");
        }
        assert_eq!(gateway(NetworkInspect::default()), None);
    }
}
