//! Heartbeats: the node is alive.

use std::time::Duration;

use proto::internal::v1::HeartbeatRequest;
use proto::required_duration;
use rand::RngExt;
use service_kit::{Backoff, CancellationToken, request};
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::retry::Retry;
use super::shared::{Session, ttl_of};

/// Heartbeats per time to live. With two, a heartbeat lost with its gateway leaves time for another
/// gateway; Nomad's one leaves only the servers' grace.
const BEATS_PER_TTL: u32 = 2;
/// Timeouts per time to live: after one, another gateway is tried.
const TIMEOUTS_PER_TTL: u32 = 4;
/// Shortest and longest retry pause. Short, because servers mark the node down after a few seconds.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// Sends heartbeats until `ended`.
pub(super) async fn run(session: &Session, ended: CancellationToken) {
    let Some(mut ttl) = session.registered(&ended).await else {
        return;
    };
    let mut rng = session.context.ids.rng();
    let mut retry = Retry::new(Backoff::new(RETRY.0, RETRY.1));
    let mut last_ok = Instant::now();
    // The registration counts as a heartbeat. The first wait is random, to spread the heartbeats of
    // nodes that started together.
    let mut wait = (ttl / BEATS_PER_TTL).mul_f64(rng.random());
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            () = sleep(wait) => {}
        }
        match beat(session, ttl).await {
            Ok(next_ttl) => {
                let silence = last_ok.elapsed();
                if silence > ttl {
                    let silence_ms = silence.as_millis();
                    warn!(silence_ms, ttl_ms = ttl.as_millis(), "missed heartbeats");
                }
                last_ok = Instant::now();
                ttl = next_ttl;
                retry.reset();
                // Jitter of a tenth keeps the heartbeats of a fleet spread.
                wait = (ttl / BEATS_PER_TTL).mul_f64(rng.random_range(0.9..1.0));
            }
            Err(status) => {
                session.context.metrics.heartbeat_failures.inc();
                session.note_refusal(&status);
                wait = Duration::ZERO;
                let pause = retry.after("send a heartbeat", &status, &mut rng);
                session.gateways.pause(pause, &ended).await;
            }
        }
    }
}

/// Returns the time to live of the next heartbeat.
async fn beat(session: &Session, ttl: Duration) -> Result<Duration, tonic::Status> {
    let identity = &session.context.identity;
    let message = HeartbeatRequest {
        node_id: identity.node_id.to_string(),
        secret: identity.secret.clone(),
    };
    let timeout = ttl / TIMEOUTS_PER_TTL;
    let response = session
        .gateways
        .call(async |mut client| client.heartbeat(request(message, timeout)).await)
        .await?;
    session.context.metrics.heartbeats.inc();
    session.gateways.replace(&response.gateways);
    session.agent.record_contact().await;
    Ok(ttl_of(required_duration(
        "heartbeat_ttl",
        response.heartbeat_ttl,
    )))
}
