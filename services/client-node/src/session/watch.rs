//! Watch of the node's allocations.

use std::time::Duration;

use gateway_calls::{Retry, naming};
use proto::internal::v1::{AllocationsUpdate, WatchAllocationsRequest};
use service_kit::{Backoff, CancellationToken, request};
use tokio::sync::watch as latest;
use tonic::{Status, Streaming};
use tracing::debug;

use super::shared::Session;
use crate::allocations::reader::Reader;

/// Timeout for the start of a stream: a gateway first catches up with the revision that this node
/// has seen.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Watches until `ended`, with failover between gateways.
pub(super) async fn run(session: &Session, ended: CancellationToken) {
    if session.registered(&ended).await.is_none() {
        return;
    }
    let mut rng = session.context.tasks.ids.rng();
    let mut retry = Retry::new(Backoff::default());
    while !ended.is_cancelled() {
        let began = tokio::time::Instant::now();
        let status = tokio::select! {
            () = ended.cancelled() => return,
            status = watch(session) => status,
        };
        session.note_refusal(&status);
        if began.elapsed() > Backoff::DEFAULT.1 {
            // The stream worked for a while.
            retry.reset();
        }
        let wait = retry.after("watch the node's allocations", &status, &mut rng);
        session.gateways.pause(wait, &ended).await;
    }
}

/// Applies one stream until it breaks. Returns the error.
async fn watch(session: &Session) -> Status {
    let (address, mut client) = match session.gateways.current() {
        Ok(current) => current,
        Err(status) => return status,
    };
    // Only later changes count: the stream's gateway may be newer than the last heartbeat.
    let mut heartbeat_gateway = session.gateways.heartbeat_gateway();
    heartbeat_gateway.mark_unchanged();
    let identity = &session.context.identity;
    let seen_revision = session.agent.seen_revision();
    let message = WatchAllocationsRequest {
        node_id: identity.node_id.to_string(),
        secret: identity.secret.clone(),
        seen_revision,
    };
    debug!(
        gateway = address,
        seen_revision, "opening a stream of allocations"
    );
    let begun = client.watch_allocations(stream_request(message)).await;
    let status = match begun {
        Ok(response) => {
            session.context.metrics.watch_streams.inc();
            session.gateways.answered();
            let moved = has_moved(heartbeat_gateway, address.clone());
            apply_all(session, response.into_inner(), moved).await
        }
        Err(status) => status,
    };
    session.gateways.refused(&address, &status);
    naming(&address, &status)
}

fn stream_request(message: WatchAllocationsRequest) -> tonic::Request<WatchAllocationsRequest> {
    request(message, BEGIN_TIMEOUT)
}

/// Waits until a gateway other than `address` accepts the node's heartbeats: the one at `address` may
/// be cut off from the store, and its streams silent.
async fn has_moved(mut heartbeat_gateway: latest::Receiver<Option<String>>, address: String) {
    loop {
        if heartbeat_gateway.changed().await.is_err() {
            // The sender lives as long as the session.
            std::future::pending::<()>().await;
        }
        let now_at = heartbeat_gateway.borrow_and_update();
        if now_at.as_ref().is_some_and(|at| *at != address) {
            return;
        }
    }
}

/// Applies the updates of a stream until it breaks, or until `moved`.
async fn apply_all(
    session: &Session,
    mut stream: Streaming<AllocationsUpdate>,
    moved: impl Future<Output = ()>,
) -> Status {
    let mut reader = Reader::default();
    let mut moved = std::pin::pin!(moved);
    loop {
        let message = tokio::select! {
            biased;
            () = &mut moved => {
                return Status::aborted("another gateway accepts the node's heartbeats");
            }
            message = stream.message() => message,
        };
        match message {
            Ok(Some(message)) => {
                session.context.metrics.watch_updates.inc();
                let is_usable = session.agent.apply(reader.read(message)).await;
                session.agent.forget_removed();
                if !is_usable {
                    return Status::aborted("the servers have another store than before");
                }
            }
            Ok(None) => return Status::unavailable("the gateway has ended the stream"),
            Err(status) => return status,
        }
    }
}
