//! Names of services by DNS: the sockets, and the server around the node's look-ups.

use std::sync::Arc;

use service_dns::{DnsConfig, DnsMetrics, LocalNode, Server, Zone};
use service_kit::CancellationToken;

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;

/// Binds the server of services' names, if the node has one.
pub(super) async fn bind(config: &DnsConfig) -> Result<Option<Server>, Error> {
    if !config.enabled {
        return Ok(None);
    }
    let bound = Server::bind(config.listen).await;
    let server = bound.map_err(|error| Error::Setting {
        field: "dns.listen".to_owned(),
        problem: format!("cannot listen on {}: {error}", config.listen),
    })?;
    Ok(Some(server))
}

/// Serves the names of services until `ended`.
pub(super) async fn serve(
    server: Option<Server>,
    config: &Config,
    context: &Context,
    registry: service_kit::Metrics,
    ended: &CancellationToken,
) {
    let Some(server) = server else { return };
    let local_node = LocalNode {
        node_id: context.identity.node_id.to_string(),
        datacenter: config.datacenter.clone(),
    };
    let zone = Zone::new(
        &config.dns,
        Arc::clone(&context.services),
        local_node,
        context.tasks.ids.child("dns"),
        registry.register(DnsMetrics::register),
    );
    server.run(zone, ended.clone()).await;
}
