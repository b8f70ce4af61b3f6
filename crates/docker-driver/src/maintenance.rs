//! Probe of the engine, and removal of containers that no record names; unused images: `image_removal`.

use std::collections::BTreeMap;
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

/// A bridge of two families lists its IPv4 network first.
fn gateway(network: NetworkInspect) -> Option<String> {
    let networks = network.ipam.and_then(|ipam| ipam.config);
    let mut gateways = networks.into_iter().flatten().filter_map(|it| it.gateway);
    gateways.find(|gateway| !gateway.is_empty())
}

#[cfg(test)]
mod tests {
    use bollard::models::{Ipam, IpamConfig};

    use super::*;

    #[test]
    fn the_gateway_of_a_bridge_is_its_first() {
        let network = |gateways: &[Option<&str>]| NetworkInspect {
            ipam: Some(Ipam {
                config: Some(
                    gateways
                        .iter()
                        .map(|gateway| IpamConfig {
                            gateway: gateway.map(str::to_owned),
                            ..IpamConfig::default()
                        })
                        .collect(),
                ),
                ..Ipam::default()
            }),
            ..NetworkInspect::default()
        };
        let of = |gateways: &[Option<&str>]| gateway(network(gateways));
        assert_eq!(
            of(&[Some("172.17.0.1"), Some("fd00::1")]).as_deref(),
            Some("172.17.0.1")
        );
        assert_eq!(of(&[None, Some("")]), None);
        assert_eq!(gateway(NetworkInspect::default()), None);
    }
}
