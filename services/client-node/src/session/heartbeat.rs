//! Says that the node is alive.

use std::time::Duration;

use proto::internal::v1::HeartbeatRequest;
use proto::required_duration;
use rand::RngExt;
use service_kit::{Backoff, CancellationToken, request};
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::patience::Patience;
use super::{Session, ttl_of};

/// How many beats fit into the time within which one is due. Two, so that one that is lost with
/// its gateway leaves the time for another gateway; Nomad's one leaves only the servers' grace.
const BEATS_PER_TTL: u32 = 2;
/// How long one may take, as a part of the same time: then another gateway is asked.
const TIMEOUTS_PER_TTL: u32 = 4;
/// The first tries after a failure come within a fraction of a second, later ones each second: the
/// node is down for the servers after a few.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// Beats until `ended`.
pub(super) async fn run(session: &Session, ended: CancellationToken) {
    let Some(mut ttl) = session.registered(&ended).await else {
        return;
    };
    let mut rng = session.context.ids.rng();
    let mut patience = Patience::new(Backoff::new(RETRY.0, RETRY.1));
    let mut last_ok = Instant::now();
    // Registering counts as a beat, so the first is due only then; anywhere before, so that nodes
    // that were started together do not beat together.
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
                patience.reset();
                // A tenth of jitter keeps a fleet from falling into step.
                wait = (ttl / BEATS_PER_TTL).mul_f64(rng.random_range(0.9..1.0));
            }
            Err(status) => {
                session.context.metrics.heartbeat_failures.inc();
                session.note_refusal(&status);
                wait = Duration::ZERO;
                let pause = patience.after("say that the node lives", &status, &mut rng);
                session.gateways.pause(pause, &ended).await;
            }
        }
    }
}

/// Returns the time within which the next beat is due.
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
    session.agent.heard().await;
    Ok(ttl_of(required_duration(
        "heartbeat_ttl",
        response.heartbeat_ttl,
    )))
}
