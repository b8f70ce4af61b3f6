//! The state that the handlers of node RPCs share.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::Core;
use keyring::Keyring;
use node_calls::NodeCalls;
use service_kit::{CancellationToken, Transport};
use tokio::sync::Semaphore;

use crate::metrics::Metrics;
use crate::node_ca::NodeCa;
use crate::report_loop::ReportHandle;
use crate::service_loop::SharedIndex;
use crate::sessions::Sessions;
use crate::shared_heartbeats::SharedHeartbeats;

/// The answer of a heartbeat that is the same for all nodes.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The addresses of all gateways, for failover.
    pub gateways: Vec<String>,
    /// The maximum time between two heartbeats.
    pub heartbeat_ttl: Duration,
    /// The way to the cluster-controller.
    pub transport: Transport,
    /// Issues the certificates of nodes; `None`: nodes cannot join by themselves.
    pub node_ca: Option<NodeCa>,
    /// Issuer of the tokens, a URL; `None`: tokens name none, and there is no OpenID document.
    pub oidc_issuer: Option<String>,
}

/// Shared by all handlers of node RPCs.
#[derive(Debug)]
pub struct NodeGateway {
    pub core: Arc<Core>,
    pub config: NodeConfig,
    pub sessions: Sessions,
    pub heartbeats: SharedHeartbeats,
    pub reports: ReportHandle,
    pub metrics: Metrics,
    /// Introductions in progress.
    pub introducing: Semaphore,
    /// Services by name, for the streams of nodes.
    pub(crate) services: Arc<SharedIndex>,
    /// Signs the identity tokens of tasks, and opens variables.
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) node_calls: NodeCalls,
    pub drain: CancellationToken,
}
