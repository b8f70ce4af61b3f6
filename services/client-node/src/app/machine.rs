//! Periodic fingerprint of the machine; a changed record is registered.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloc_network::Networks;
use csi_node::Storage as Volumes;
use fingerprint::{Agent, Offers, Plugins, Probe, changes};
use futures::future::join_all;
use model::Node;
use rand::RngExt as _;
use rand::rngs::StdRng;
use service_kit::CancellationToken;
use task_drivers::{Driver, Fingerprint};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tracing::info;

use crate::config::Config;
use crate::context::Context;
use crate::grpc::operations::Refresh;
use crate::node_meta::NodeMeta;

/// Parts of the node's record besides the hardware.
pub(super) struct Machine {
    pub(super) address: String,
    pub(super) drivers: BTreeMap<&'static str, Arc<dyn Driver>>,
    pub(super) driver_plugins: driver_plugin::Plugins,
    pub(super) offers: Offers,
    /// `None` on a simulated node.
    pub(super) networks: Option<Arc<Networks>>,
    /// Plugins of storage; `None` on a simulated node.
    pub(super) volumes: Option<Arc<Volumes>>,
    /// Attributes of the networks, as last probed.
    pub(super) offered: Mutex<BTreeMap<String, String>>,
    pub(super) meta: Arc<NodeMeta>,
    /// Of Vault and Consul, if the node has them.
    pub(super) probes: Vec<Probe>,
}

impl Machine {
    pub(super) fn node(
        &self,
        config: &fingerprint::Config,
        identity: &local_state::Identity,
        alloc_dir: Option<&Path>,
        host_ip: Option<IpAddr>,
    ) -> Node {
        let drivers: BTreeMap<&'static str, Fingerprint> = self
            .drivers
            .iter()
            .map(|(name, driver)| (*name, driver.fingerprint()))
            .collect();
        let mut probed = self.offered().clone();
        probed.extend(self.probes.iter().flat_map(Probe::attributes));
        probed.extend(self.driver_plugins.attributes());
        let mut plugins = Plugins::default();
        if let Some(volumes) = &self.volumes {
            probed.insert(model::csi::CSI_ATTRIBUTE.to_owned(), "true".to_owned());
            (plugins.nodes, plugins.controllers) = volumes.registry.reports();
        }
        let agent = Agent {
            node_id: identity.node_id,
            secret: &identity.secret,
            address: &self.address,
            host_ip,
            alloc_dir,
            drivers: &drivers,
            probed: &probed,
            plugins: &plugins,
            meta: &self.meta.dynamic(),
        };
        fingerprint::node(config, agent, &self.offers)
    }

    /// Lets the drivers, the networks and the clients of Vault and Consul probe their environment and repair what
    /// other programs have changed, all at once.
    pub(super) async fn refresh(&self) {
        let drivers = join_all(self.drivers.values().map(|driver| driver.refresh()));
        let networks = async {
            if let Some(networks) = self.networks.clone()
                && let Ok(offer) = blocking::spawn(move || {
                    networks.repair();
                    networks.sweep();
                    networks.offer()
                })
                .await
            {
                *self.offered() = offer.attributes();
            }
        };
        let services = join_all(self.probes.iter().map(|probe| probe.refresh()));
        tokio::join!(drivers, networks, services);
    }

    fn interval(&self, usual: Duration, rng: &mut StdRng) -> Duration {
        let jitter = rng.random();
        let intervals = self.probes.iter();
        let intervals = intervals.map(|probe| probe.interval(usual, jitter));
        intervals.min().unwrap_or(usual)
    }

    fn offered(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fingerprints the machine at every interval and when `asked` until `ended`, and publishes changed records.
    pub(super) async fn watch(
        &self,
        config: &Config,
        context: &Context,
        node: watch::Sender<Node>,
        mut asked: mpsc::Receiver<Refresh>,
        ended: CancellationToken,
    ) {
        // A simulated machine does not change.
        let Some(alloc_dir) = context.tasks.alloc_dir.as_deref() else {
            return;
        };
        let settings = config.fingerprint();
        let mut plugins = self.volumes.as_ref().map(|it| it.registry.changes());
        let mut meta = self.meta.changes();
        let mut drivers = self.driver_plugins.changes();
        let mut rng = context.tasks.ids.rng();
        let mut answer: Option<Refresh> = None;
        loop {
            // First, because plugins may have changed since the record that was registered, before this
            // loop followed them.
            let host_ip = node.borrow().host_ip.parse().ok();
            let found = self.node(&settings, &context.identity, Some(alloc_dir), host_ip);
            let changed = publish(&node, found);
            if let Some(answer) = answer.take() {
                // The caller may have gone.
                let _ = answer.send(changed);
            }
            tokio::select! {
                () = ended.cancelled() => return,
                () = sleep(self.interval(config.fingerprint_interval, &mut rng)) => {
                    tokio::select! {
                        () = ended.cancelled() => return,
                        () = self.refresh() => {}
                    }
                }
                Some(refresh) = asked.recv() => {
                    answer = Some(refresh);
                    tokio::select! {
                        () = ended.cancelled() => return,
                        () = self.refresh() => {}
                    }
                }
                () = changed_in(Some(&mut meta)) => {}
                () = changed_in(Some(&mut drivers)) => {}
                () = changed_in(plugins.as_mut()) => {}
            }
        }
    }
}

/// Publishes a record, and returns the parts that have changed.
fn publish(node: &watch::Sender<Node>, found: Node) -> Vec<&'static str> {
    let mut changed = Vec::new();
    node.send_if_modified(|known| {
        changed = changes(known, &found);
        *known = found;
        !changed.is_empty()
    });
    if !changed.is_empty() {
        info!(?changed, "the machine has changed");
    }
    changed
}

/// Waits for a change.
async fn changed_in<T>(value: Option<&mut watch::Receiver<T>>) {
    let changed = match value {
        Some(value) => value.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}
