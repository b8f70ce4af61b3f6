//! The parts of a node, made from its configuration and its local state.

use std::sync::Arc;

use alloc_network::Networks;
use csi_node::Storage as Volumes;
use fingerprint::Probe;
use gateway_calls::Gateways;
use local_state::{CertificateFiles, CertifiedId, Opened};
use service_kit::{IdSource, Transport};
use task_runner::Drivers;

use super::drivers;
use super::machine::Machine;
use super::serving::Listeners;
use crate::SUPERVISOR_SUBCOMMAND;
use crate::config::Config;
use crate::error::Error;
use crate::metrics::Metrics;
use crate::node_meta::NodeMeta;

/// Parts of a node that [`App::assemble`] puts together.
pub(super) struct Parts {
    pub(super) metrics: Metrics,
    pub(super) registry: service_kit::Metrics,
    pub(super) ids: IdSource,
    pub(super) gateways: Gateways,
    pub(super) artifacts: Option<Arc<artifact_fetch::Artifacts>>,
    pub(super) machine: Machine,
    pub(super) vault: Option<task_vault::Node>,
    pub(super) consul: Option<task_consul::Node>,
    pub(super) listeners: Option<Listeners>,
    pub(super) dns: Option<service_dns::Server>,
    pub(super) own_certificate: Option<CertificateFiles>,
}

/// Returns the node's Vault, if it has one.
pub(super) fn open_vault(config: &Config) -> Result<Option<task_vault::Node>, Error> {
    if !config.vault.enabled {
        return Ok(None);
    }
    let client = vault::Client::open(&config.vault).map_err(|(field, problem)| Error::Setting {
        field: format!("vault.{field}"),
        problem,
    })?;
    Ok(Some(task_vault::Node::new(client, &config.vault)))
}

/// Returns the probes of the services that the node has.
pub(super) fn probes(
    vault: Option<&task_vault::Node>,
    consul: Option<&task_consul::Node>,
) -> Vec<Probe> {
    let vault = vault.map(|node| {
        let client = node.client().clone();
        Probe::new("Vault", move || {
            let client = client.clone();
            Box::pin(async move { task_vault::attributes::read(&client).await })
        })
    });
    let consul = consul.map(|node| {
        let client = node.client().clone();
        Probe::new("Consul", move || {
            let client = client.clone();
            Box::pin(async move { task_consul::attributes::read(&client).await })
        })
    });
    vault.into_iter().chain(consul).collect()
}

/// Opens the storage of volumes; `None` on a node without a data directory.
///
/// # Errors
/// Its directories cannot be used.
pub(super) fn open_volumes(opened: &Opened) -> Result<Option<Arc<Volumes>>, Error> {
    let Some(alloc_dir) = opened.alloc_dir.as_deref() else {
        return Ok(None);
    };
    let path = alloc_dir.with_file_name("csi");
    let opened = Volumes::open(&path, &task_drivers::boot_id());
    let opened = opened.map_err(|source| Error::File { path, source })?;
    Ok(Some(Arc::new(opened)))
}

/// Returns the networks of allocations; `None` on a node without a data directory.
pub(super) fn make_networks(config: &Config, opened: &Opened) -> Option<Arc<Networks>> {
    let state_dir = opened.state_dir.as_deref()?;
    Some(Arc::new(Networks::new(alloc_network::Settings {
        config: config.network.clone(),
        state_dir: state_dir.join("networks"),
        boot_id: task_drivers::boot_id(),
    })))
}

/// Returns the node's metadata, with what an earlier run of the agent stored.
pub(super) fn node_meta(config: &Config, opened: &Opened) -> Arc<NodeMeta> {
    let (fixed, dynamic) = (config.meta.clone(), opened.restored.meta.clone());
    Arc::new(NodeMeta::new(fixed, dynamic))
}

/// Returns the agent's own drivers.
pub(super) fn built_in_drivers(config: &Config, opened: &Opened) -> Drivers {
    drivers::drivers(
        &config.drivers,
        &node_info(config, opened),
        SUPERVISOR_SUBCOMMAND,
    )
}

/// Returns the agent's own drivers, and those of plugins.
pub(super) async fn make_drivers(
    config: &Config,
    opened: &Opened,
) -> (Drivers, driver_plugin::Plugins) {
    let mut all = built_in_drivers(config, opened);
    let plugins = drivers::plugins(config, &node_info(config, opened), &all).await;
    all.extend(plugins.drivers());
    (all, plugins)
}

fn node_info<'a>(config: &Config, opened: &'a Opened) -> drivers::NodeInfo<'a> {
    drivers::NodeInfo {
        state_dir: opened.state_dir.as_deref(),
        node_id: opened.identity.node_id.to_string(),
        node_name: config.name.clone().unwrap_or_default(),
    }
}

/// Returns the node's id in its certificate; `None` without TLS.
pub(super) fn certified_id(
    config: &Config,
    transport: &Transport,
) -> Result<Option<CertifiedId>, Error> {
    let Some(identity) = transport.identity() else {
        return Ok(None);
    };
    let node_id = identity.name().parse().map_err(|_| Error::Setting {
        field: "tls.cert_file".to_owned(),
        problem: format!(
            "the certificate is for node {:?}, which is not a valid node ID: create one with `kafila tls cert \
             create -role=node -node=ID`",
            identity.name()
        ),
    })?;
    let cert_file = config.tls.cert_file.clone().unwrap_or_default();
    Ok(Some(CertifiedId { node_id, cert_file }))
}
