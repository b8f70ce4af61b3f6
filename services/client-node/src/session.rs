//! Speaks to the gateways: makes the node known, says that it lives, watches what it is to run.
//!
//! Four loops side by side, so that none waits for another's call: [`register`] (again whenever a
//! gateway does not know the node, or the machine has changed), [`heartbeat`], [`watch`], and the
//! reports in [`crate::reporter`]. Everything but registering waits for the first registration.

mod heartbeat;
mod patience;
mod register;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use model::{FieldErrors, Node};
use service_kit::CancellationToken;
use tokio::sync::{Notify, watch as latest};
use tonic::{Code, Status};

use crate::agent::Agent;
use crate::context::Context;
use crate::gateways::Gateways;
use crate::reporter;

/// How long a gateway may take for a call that writes at most one small key.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// One node's session.
pub(crate) struct Session {
    pub(crate) context: Arc<Context>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) gateways: Arc<Gateways>,
    /// The node's record as the machine is now.
    pub(crate) node: latest::Receiver<Node>,
    /// Rung when a gateway does not know the node.
    pub(crate) unknown: Notify,
    /// The time within which heartbeats are due, as the servers say; `None` before registering.
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

    /// Runs until `ended`.
    pub(crate) async fn run(&self, ended: CancellationToken) {
        tokio::join!(
            register::run(self, ended.clone()),
            heartbeat::run(self, ended.clone()),
            watch::run(self, ended.clone()),
            reporter::run(&self.context, &self.gateways, ended.clone()),
        );
    }

    /// Waits for the first registration; `None` when the node ends before.
    async fn registered(&self, ended: &CancellationToken) -> Option<Duration> {
        let mut ttl = self.ttl.subscribe();
        tokio::select! {
            () = ended.cancelled() => None,
            // The sender is the session's own.
            found = ttl.wait_for(Option::is_some) => found.ok().and_then(|ttl| *ttl),
        }
    }

    /// Has the node registered again when a refusal says that it is not known as it should be.
    fn note_refusal(&self, status: &Status) {
        if matches!(status.code(), Code::NotFound | Code::PermissionDenied) {
            self.unknown.notify_one();
        }
    }
}

/// Returns the time to live that a gateway told; one that is missing or makes no sense is the
/// servers' default.
fn ttl_of(read: Result<Duration, FieldErrors>) -> Duration {
    const DEFAULT_TTL: Duration = Duration::from_secs(10);
    read.ok()
        .filter(|ttl| !ttl.is_zero())
        .unwrap_or(DEFAULT_TTL)
}
