//! Registration of the node, and updates of its record.

use std::time::Duration;

use gateway_calls::Retry;
use model::Node;
use proto::internal::v1::RegisterNodeRequest;
use proto::required_duration;
use proto::v1;
use service_kit::{Backoff, CancellationToken, request};
use tokio::time::sleep;
use tracing::info;

use super::shared::{CALL_TIMEOUT, Session, ttl_of};

/// Debounce of changes of the machine: several often follow each other.
const CHANGE_PAUSE: Duration = Duration::from_secs(5);

/// Registers, and again when a gateway does not know the node or the record changes, until `ended`.
pub(super) async fn run(session: &Session, ended: CancellationToken) {
    let mut node = session.node.clone();
    let mut rng = session.context.tasks.ids.rng();
    let mut retry = Retry::new(Backoff::default());
    loop {
        let record = node.borrow_and_update().clone();
        match register(session, &record).await {
            Ok(()) => retry.reset(),
            Err(status) => {
                let wait = retry.after("register the node", &status, &mut rng);
                session.gateways.pause(wait, &ended).await;
                if ended.is_cancelled() {
                    return;
                }
                continue;
            }
        }
        tokio::select! {
            () = ended.cancelled() => return,
            () = session.unknown.notified() => info!("registering again"),
            changed = node.changed() => {
                // The fingerprint loop has ended: the record stays as it is.
                if changed.is_err() {
                    tokio::select! {
                        () = ended.cancelled() => return,
                        () = session.unknown.notified() => info!("registering again"),
                    }
                    continue;
                }
                tokio::select! {
                    () = ended.cancelled() => return,
                    () = sleep(CHANGE_PAUSE) => {}
                }
                info!("the machine has changed; registering again");
            }
        }
    }
}

async fn register(session: &Session, node: &Node) -> Result<(), tonic::Status> {
    let message = RegisterNodeRequest {
        node: Some(v1::Node::from(node)),
        secret: session.context.identity.secret.clone(),
    };
    let response = session
        .gateways
        .call(async |mut client| client.register(request(message, CALL_TIMEOUT)).await)
        .await?;
    session.context.metrics.registrations.inc();
    session.gateways.replace(&response.gateways);
    let is_first = session.ttl.borrow().is_none();
    session.ttl.send_replace(Some(ttl_of(required_duration(
        "heartbeat_ttl",
        response.heartbeat_ttl,
    ))));
    if is_first {
        let node_id = session.context.identity.node_id;
        info!(%node_id, name = node.name, status = response.status, "node registered");
    }
    session.agent.record_contact().await;
    Ok(())
}
