//! Passes on to the cluster-controller's leader who was heard from.

use std::time::Duration;

use model::LeaderInfo;
use proto::internal::v1::liveness_client::LivenessClient;
use proto::internal::v1::{LivenessAck, NodesAlive};
use service_kit::{Backoff, CancellationToken, connect_lazy, request};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use tracing::{debug, info};

use crate::gateway::Shared;

/// Whose leader keeps the timers.
pub const CONTROLLER: &str = "cluster-controller";
/// How often nodes heard from are passed on: five small messages a second from each gateway, and a
/// heartbeat is at most this much older there than here, little beside a TTL of seconds.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);
/// How long the stream may take to open, and an answer to a message to come. An answer takes a
/// millisecond; a leader that takes 3 s is stuck or deposed, and what it was told is repeated to
/// the next in time for a TTL of 10 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Messages handed to the transport ahead of it: one being sent, one waiting.
const SEND_AHEAD: usize = 2;
/// How long to wait for a leader to appear before looking again.
const NO_LEADER_WAIT: Duration = Duration::from_millis(500);

/// Runs until stopped.
pub async fn run(gateway: Shared, name: String, stop: CancellationToken) {
    let mut backoff = Backoff::default();
    let mut rng = gateway.ids.child("liveness").rng();
    loop {
        let Some(leader) = gateway.replica.leader(CONTROLLER) else {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(NO_LEADER_WAIT) => continue,
            }
        };
        let started = Instant::now();
        let ended = tokio::select! {
            () = stop.cancelled() => return,
            ended = follow(&gateway, &leader, &name) => ended,
        };
        gateway.heard().disconnected();
        gateway.metrics.liveness_reconnects.inc();
        debug!(
            address = leader.address,
            reason = ended.message(),
            "stream to the controller ended"
        );
        if started.elapsed() > ANSWER_TIMEOUT {
            // It worked for a while: the next leader need not wait for the last one's sins.
            backoff.reset();
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(backoff.next(&mut rng)) => {}
        }
    }
}

/// Talks to one leader until that ends; returns why.
async fn follow(gateway: &Shared, leader: &LeaderInfo, name: &str) -> Status {
    match open(leader).await {
        Ok((sender, mut acks)) => {
            info!(
                address = leader.address,
                "telling the controller who is alive"
            );
            talk(gateway, leader, name, &sender, &mut acks).await
        }
        Err(status) => status,
    }
}

async fn open(
    leader: &LeaderInfo,
) -> Result<(mpsc::Sender<NodesAlive>, Streaming<LivenessAck>), Status> {
    let channel = connect_lazy(&leader.address)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    let (sender, receiver) = mpsc::channel(SEND_AHEAD);
    let messages = request(ReceiverStream::new(receiver), ANSWER_TIMEOUT);
    let response = LivenessClient::new(channel).report(messages).await?;
    Ok((sender, response.into_inner()))
}

async fn talk(
    gateway: &Shared,
    leader: &LeaderInfo,
    name: &str,
    sender: &mpsc::Sender<NodesAlive>,
    acks: &mut Streaming<LivenessAck>,
) -> Status {
    let mut ticks = interval(REPORT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut acked_at = Instant::now();
    let mut unanswered = 0_usize;
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                if gateway.replica.leader(CONTROLLER).as_ref() != Some(leader) {
                    return Status::aborted("another leads now");
                }
                if unanswered > 0 && acked_at.elapsed() > ANSWER_TIMEOUT {
                    return Status::deadline_exceeded("the controller does not answer");
                }
                let message = gateway.heard().next_message(Instant::now());
                gateway.metrics.liveness_pending.set(pending(gateway));
                let Some((sequence, nodes)) = message else { continue };
                if unanswered == 0 {
                    acked_at = Instant::now();
                }
                unanswered += 1;
                let node_ids = nodes.iter().map(ToString::to_string).collect();
                let message = NodesAlive { gateway: name.to_owned(), node_ids, sequence };
                if timeout(ANSWER_TIMEOUT, sender.send(message)).await.is_err() {
                    return Status::deadline_exceeded("the controller does not read");
                }
                gateway.metrics.liveness_messages.inc();
            }
            ack = acks.message() => match ack {
                Ok(Some(ack)) => {
                    gateway.heard().acked(ack.sequence);
                    acked_at = Instant::now();
                    unanswered = unanswered.saturating_sub(1);
                }
                Ok(None) => return Status::unavailable("the controller ended the stream"),
                Err(status) => return status,
            },
        }
    }
}

fn pending(gateway: &Shared) -> i64 {
    i64::try_from(gateway.heard().pending_count()).unwrap_or(i64::MAX)
}
