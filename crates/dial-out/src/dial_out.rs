//! The stream of requests for connections, which the node keeps open to the gateway of its session.

use std::time::Duration;

use futures::future::BoxFuture;
use gateway_calls::{Gateways, naming};
use identity::Peer;
use local_state::Identity;
use proto::internal::v1::AwaitConnectionsRequest;
use rand::rngs::StdRng;
use service_kit::{Backoff, CancellationToken, Opened, request};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};
use tracing::debug;

use crate::metrics::Metrics;
use crate::open::Opener;

/// Timeout for the start of a stream.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses after a gateway that does not know the stream, because it is older: half of this to all of it, or until
/// another gateway accepts the node's heartbeats.
const OLDER_GATEWAY_PAUSE: Duration = Duration::from_secs(600);
/// Connections that are being opened at a time; further requests wait in the stream.
const MAX_OPENING: usize = 32;

/// A node that opens connections for its gateway.
pub struct DialOut<'a> {
    pub gateways: &'a Gateways,
    pub identity: &'a Identity,
    /// The node's server takes the connections.
    pub server: mpsc::Sender<Opened>,
    /// Gateways, as callers of the node's server.
    pub peer: Peer,
    pub metrics: &'a Metrics,
}

/// The reason for the end of a stream.
enum End {
    /// Another gateway accepts the node's heartbeats.
    Moved,
    /// The gateway at this address does not know the stream.
    Older(String),
    Failed(Status),
}

impl<'a> DialOut<'a> {
    /// Opens connections until `drain`, with failover between gateways.
    ///
    /// Failures are no warnings, and start no failover: the loops of the node's session notice a gateway that
    /// fails, and without these connections gateways dial the node.
    pub fn run(self, rng: StdRng, drain: CancellationToken) -> BoxFuture<'a, ()> {
        Box::pin(self.follow_until(rng, drain))
    }

    async fn follow_until(self, mut rng: StdRng, drain: CancellationToken) {
        let (server, peer) = (self.server.clone(), self.peer.clone());
        let opener = Opener::new(self.identity, server, peer, self.metrics.clone());
        let mut backoff = Backoff::default();
        let mut older = Backoff::new(OLDER_GATEWAY_PAUSE, OLDER_GATEWAY_PAUSE);
        while !drain.is_cancelled() {
            let began = Instant::now();
            let mut heartbeat_gateway = self.gateways.heartbeat_gateway();
            let end = tokio::select! {
                () = drain.cancelled() => return,
                end = self.follow(&opener) => end,
            };
            let status = match end {
                End::Moved => continue,
                End::Older(address) => {
                    debug!(gateway = address, "the gateway asks for no connections");
                    tokio::select! {
                        () = drain.cancelled() => return,
                        () = sleep(older.next(&mut rng)) => {}
                        () = has_moved(&mut heartbeat_gateway, &address) => {}
                    }
                    continue;
                }
                End::Failed(status) => status,
            };
            let (code, message) = (status.code(), status.message());
            debug!(?code, message, "no requests for connections");
            if began.elapsed() > Backoff::DEFAULT.1 {
                // The stream worked for a while.
                backoff.reset();
            }
            self.gateways.pause(backoff.next(&mut rng), &drain).await;
        }
    }

    /// Opens the connections that one gateway asks for, until its stream ends.
    async fn follow(&self, opener: &Opener) -> End {
        let (address, mut client) = match self.gateways.current() {
            Ok(current) => current,
            Err(status) => return End::Failed(status),
        };
        // Only later changes count: the stream's gateway may be newer than the last heartbeat.
        let mut heartbeat_gateway = self.gateways.heartbeat_gateway();
        heartbeat_gateway.mark_unchanged();
        let message = AwaitConnectionsRequest {
            node_id: self.identity.node_id.to_string(),
            secret: self.identity.secret.clone(),
        };
        let begun = client.await_connections(request(message, BEGIN_TIMEOUT));
        let mut requests = match begun.await {
            Ok(response) => response.into_inner(),
            Err(status) if status.code() == Code::Unimplemented => return End::Older(address),
            Err(status) => return End::Failed(naming(&address, &status)),
        };
        debug!(gateway = address, "awaiting requests for connections");
        let mut opening = JoinSet::new();
        loop {
            tokio::select! {
                () = has_moved(&mut heartbeat_gateway, &address) => return End::Moved,
                Some(_) = opening.join_next() => {}
                request = requests.message(), if opening.len() < MAX_OPENING => match request {
                    Ok(Some(request)) => {
                        let opener = opener.clone();
                        opening.spawn(opener.open(client.clone(), request.connection_id));
                    }
                    Ok(None) => {
                        let message = "the gateway has ended the stream";
                        return End::Failed(naming(&address, &Status::unavailable(message)));
                    }
                    Err(status) => return End::Failed(naming(&address, &status)),
                },
            }
        }
    }
}

/// Waits until a gateway other than `address` accepts the node's heartbeats.
async fn has_moved(heartbeat_gateway: &mut watch::Receiver<Option<String>>, address: &str) {
    loop {
        if heartbeat_gateway.changed().await.is_err() {
            // The sender lives as long as the session.
            std::future::pending::<()>().await;
        }
        let now_at = heartbeat_gateway.borrow_and_update();
        if now_at.as_ref().is_some_and(|at| at != address) {
            return;
        }
    }
}
