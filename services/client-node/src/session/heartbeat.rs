//! Heartbeats: the node is alive.

use std::time::Duration;

use model::NodeStatus;
use proto::internal::v1::{HeartbeatRequest, HeartbeatResponse};
use proto::required_duration;
use rand::RngExt;
use service_kit::{Backoff, CancellationToken, request};
use tokio::time::{Instant, sleep};
use tonic::Status;
use tracing::{info, warn};

use super::failover::Failover;
use super::gateways::is_gateway_failure;
use super::retry::Retry;
use super::shared::{Session, ttl_of};

/// Heartbeats per time to live. With two, a heartbeat lost with its gateway leaves time for another
/// gateway; Nomad's one leaves only the servers' grace.
const BEATS_PER_TTL: u32 = 2;
/// Timeouts per time to live: after one, another gateway is tried. Also the longest backoff, which
/// the servers' grace covers.
const TIMEOUTS_PER_TTL: u32 = 4;
/// Shortest retry pause, after every gateway has been tried.
const RETRY_MIN: Duration = Duration::from_millis(200);

/// Sends heartbeats until `ended`.
pub(super) async fn run(session: &Session, ended: CancellationToken) {
    let Some(mut ttl) = session.registered(&ended).await else {
        return;
    };
    let mut rng = session.context.tasks.ids.rng();
    let mut retry = Retry::new(Backoff::new(RETRY_MIN, ttl / TIMEOUTS_PER_TTL));
    let mut failover = Failover::default();
    let mut last_ok = Instant::now();
    // The registration counts as a heartbeat. The first wait is random, to spread the heartbeats of
    // nodes that started together.
    let mut wait = (ttl / BEATS_PER_TTL).mul_f64(rng.random());
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            () = sleep(wait) => {}
        }
        let (address, answer) = beat(session, failover.avoids(), ttl).await;
        match answer {
            Ok(response) => {
                let silence = last_ok.elapsed();
                if silence > ttl {
                    let silence_ms = silence.as_millis();
                    warn!(silence_ms, ttl_ms = ttl.as_millis(), "missed heartbeats");
                }
                last_ok = Instant::now();
                retry.reset();
                failover.accepted();
                if response.status == NodeStatus::Down.as_str() {
                    // The servers did not get the node's heartbeats, perhaps because of this gateway.
                    info!(gateway = address, "the node is down; registering again");
                    session.gateways.leave(&address);
                    failover.refused(&address, session.gateways.count());
                    session.unknown.notify_one();
                }
                ttl = ttl_of(required_duration("heartbeat_ttl", response.heartbeat_ttl));
                // Jitter of a tenth keeps the heartbeats of a fleet spread.
                wait = (ttl / BEATS_PER_TTL).mul_f64(rng.random_range(0.9..1.0));
            }
            Err(status) => {
                session.context.metrics.heartbeat_failures.inc();
                session.note_refusal(&status);
                let pause = retry.after("send a heartbeat", &status, &mut rng);
                let has_others = is_gateway_failure(&status)
                    && failover.refused(&address, session.gateways.count());
                // Not cut short by the success of another call: a gateway that refuses heartbeats may
                // well accept reports.
                wait = if has_others { Duration::ZERO } else { pause };
            }
        }
    }
}

/// Sends one heartbeat, if possible not to `avoided`. Returns the gateway's address and answer.
async fn beat(
    session: &Session,
    avoided: Option<&str>,
    ttl: Duration,
) -> (String, Result<HeartbeatResponse, Status>) {
    let identity = &session.context.identity;
    let message = HeartbeatRequest {
        node_id: identity.node_id.to_string(),
        secret: identity.secret.clone(),
    };
    let timeout = ttl / TIMEOUTS_PER_TTL;
    let (address, answer) = session
        .gateways
        .call_avoiding(avoided, async |mut client| {
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
