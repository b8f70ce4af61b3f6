//! Heartbeats: the node is alive.

use std::time::Duration;

use gateway_calls::{Retry, cause};
use model::NodeStatus;
use node_session::Heartbeats;
use proto::internal::v1::{HeartbeatRequest, HeartbeatResponse};
use proto::required_duration;
use service_kit::{Backoff, CancellationToken, request};
use tokio::time::{Instant, sleep};
use tonic::Status;
use tracing::{info, warn};

use super::shared::{Session, ttl_of};

/// Shortest retry pause, after every gateway has been tried.
const RETRY_MIN: Duration = Duration::from_millis(200);

/// Sends heartbeats until `ended`.
pub(super) async fn run(session: &Session, ended: CancellationToken) {
    let Some(ttl) = session.registered(&ended).await else {
        return;
    };
    let mut rng = session.context.tasks.ids.rng();
    let mut heartbeats = Heartbeats::new(ttl);
    let mut retry = Retry::new(Backoff::new(RETRY_MIN, heartbeats.timeout()));
    let mut last_ok = Instant::now();
    let mut wait = heartbeats.first(&mut rng);
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            () = sleep(wait) => {}
        }
        let (address, answer) = send_heartbeat(session, &heartbeats).await;
        match answer {
            Ok(response) => {
                let silence = last_ok.elapsed();
                if heartbeats.is_missed(silence) {
                    let silence_ms = silence.as_millis();
                    warn!(silence_ms, "missed heartbeats");
                }
                last_ok = Instant::now();
                retry.reset();
                let ttl = ttl_of(required_duration("heartbeat_ttl", response.heartbeat_ttl));
                wait = heartbeats.accepted(ttl, &mut rng);
                if response.status == NodeStatus::Down.as_str() {
                    // The servers did not get the node's heartbeats, perhaps because of this gateway.
                    info!(gateway = address, "the node is down; registering again");
                    session.gateways.leave(&address);
                    heartbeats.not_delivered(&address, session.gateways.count());
                    session.unknown.notify_one();
                }
            }
            Err(status) => {
                session.context.metrics.heartbeat_failures.inc();
                session.note_refusal(&status);
                let pause = retry.after("send a heartbeat", &status, &mut rng);
                let has_others = cause(&status).is_of_gateway()
                    && heartbeats.not_delivered(&address, session.gateways.count());
                // Not cut short by the success of another call: a gateway that refuses heartbeats may
                // well accept reports.
                wait = if has_others { Duration::ZERO } else { pause };
            }
        }
    }
}

/// Sends one heartbeat, if possible not to the avoided gateway. Returns the gateway's address and answer.
async fn send_heartbeat(
    session: &Session,
    heartbeats: &Heartbeats,
) -> (String, Result<HeartbeatResponse, Status>) {
    let identity = &session.context.identity;
    let message = HeartbeatRequest {
        node_id: identity.node_id.to_string(),
        secret: identity.secret.clone(),
    };
    let timeout = heartbeats.timeout();
    let (address, answer) = session
        .gateways
        .call_avoiding(heartbeats.avoids(), async |mut client| {
            client.heartbeat(request(message, timeout)).await
        })
        .await;
    if let Ok(response) = &answer {
        session.context.metrics.heartbeats.inc();
        session.gateways.heartbeat_accepted(&address);
        session.gateways.replace(&response.gateways);
        session.agent.record_contact().await;
    }
    (address, answer)
}
