//! The servers of a node: RPCs of gateways, and metrics.

use std::time::Duration;

use proto::internal::v1::node_operations_server::NodeOperationsServer;
use service_kit::server::{ServeOptions, serve};
use service_kit::{Incoming, Opened, Transport};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::SERVICE;
use crate::error::Error;
use crate::grpc::operations::Operations;

pub(super) struct Listeners {
    pub(super) grpc: connections::Listener,
    pub(super) metrics: connections::Listener,
    pub(super) transport: Transport,
}

/// Serves tasks' output until drained, on accepted connections and those that the node opens, and metrics until the
/// end.
pub(super) async fn serve_all(
    listeners: Option<Listeners>,
    opened: mpsc::Receiver<Opened>,
    operations: Operations,
    registry: service_kit::Metrics,
    shutdown_grace_period: Duration,
    (drain, ended): (CancellationToken, CancellationToken),
) -> Result<(), Error> {
    let Some(listeners) = listeners else {
        return Ok(());
    };
    let options = ServeOptions {
        service: SERVICE,
        rpc_services: vec![
            proto::internal::v1::node_operations_server::SERVICE_NAME,
            process_log::SERVICE_NAME,
        ],
        descriptors: proto::DESCRIPTORS,
        metrics: Some(registry.clone()),
        shutdown_grace_period,
    };
    let agent = process_log::ProcessLog::new(drain.clone()).into_server();
    let routes = Routes::new(NodeOperationsServer::new(operations)).add_service(agent);
    let incoming = Incoming::new(listeners.grpc, listeners.transport.clone()).with_opened(opened);
    let serving = serve(incoming, routes, options, drain);
    let refreshing = listeners
        .transport
        .keep_fresh(None, registry.clone(), ended.clone());
    let measuring = registry.serve(listeners.metrics, ended);
    let (served, measured, ()) = tokio::join!(serving, measuring, refreshing);
    served?;
    measured.map_err(Error::Metrics)
}
