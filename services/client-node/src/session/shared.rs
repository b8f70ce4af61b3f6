//! State of one node's session with the servers, shared by its loops.

use std::sync::Arc;
use std::time::Duration;

use gateway_calls::{Gateways, cause};
use model::node::DEFAULT_HEARTBEAT_TTL;
use model::{FieldErrors, Node};
use service_kit::CancellationToken;
use tokio::sync::{Notify, watch as latest};
use tonic::Status;

use crate::allocations::agent::Agent;
use crate::context::Context;

/// Timeout of a call that writes at most one small key.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// One node's session.
pub(crate) struct Session {
    pub(crate) context: Arc<Context>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) gateways: Arc<Gateways>,
    /// The node's record as the machine is now.
    pub(crate) node: latest::Receiver<Node>,
    /// Notified when a gateway does not know the node.
    pub(crate) unknown: Notify,
    /// Time to live of a heartbeat, set by the servers; `None` before the registration.
    pub(crate) ttl: latest::Sender<Option<Duration>>,
}

impl Session {
    pub(crate) fn new(
        context: Arc<Context>,
        agent: Arc<Agent>,
        gateways: Arc<Gateways>,
        node: latest::Receiver<Node>,
    ) -> Self {
        let ttl = latest::Sender::new(None);
        Self {
            context,
            agent,
            gateways,
            node,
            unknown: Notify::new(),
            ttl,
        }
    }

    /// Waits for the first registration; `None`: the node ends before.
    pub(super) async fn registered(&self, ended: &CancellationToken) -> Option<Duration> {
        let mut ttl = self.ttl.subscribe();
        tokio::select! {
            () = ended.cancelled() => None,
            // The sender is the session's own.
            found = ttl.wait_for(Option::is_some) => found.ok().and_then(|ttl| *ttl),
        }
    }

    /// Requests a new registration when a gateway does not know the node or its secret.
    pub(super) fn note_refusal(&self, status: &Status) {
        if cause(status).needs_registration() {
            self.unknown.notify_one();
        }
    }
}

/// Returns the time to live that a gateway sent; the servers' default if it is missing or invalid.
pub(super) fn ttl_of(read: Result<Duration, FieldErrors>) -> Duration {
    read.ok()
        .filter(|ttl| !ttl.is_zero())
        .unwrap_or(DEFAULT_HEARTBEAT_TTL)
}
