//! The loop that passes heartbeats on to the cluster-controller's leader.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::Core;
use identity::Role;
use model::LeaderInfo;
use proto::internal::v1::liveness_client::LivenessClient;
use proto::internal::v1::{LivenessAck, NodesAlive};
use service_kit::{Backoff, CancellationToken, Transport, request};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use tracing::{debug, info};

use crate::metrics::Metrics;
use crate::shared_heartbeats::SharedHeartbeats;

/// The service whose leader keeps the timers of nodes.
pub const CONTROLLER: &str = "cluster-controller";
/// The interval at which heartbeats are passed on: five small messages a second from each gateway.
/// It delays a heartbeat by at most this much, which is little beside a TTL of seconds.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);
/// The timeout for opening the stream and for each acknowledgement. An acknowledgement takes a
/// millisecond; a leader that takes 3 s is stuck or deposed, and the next leader gets its messages
/// in time for a TTL of 10 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Messages that wait for the transport: one being sent, one queued.
const SEND_AHEAD: usize = 2;
/// The longest backoff between two streams: there is one leader and few gateways, and each second
/// without a relay is one in which nodes leave this gateway.
const RECONNECT_MAX: Duration = Duration::from_secs(1);
/// The delay between two looks for a leader while there is none.
const NO_LEADER_WAIT: Duration = Duration::from_millis(500);

/// Runs until stopped.
pub async fn run(
    core: Arc<Core>,
    heartbeats: SharedHeartbeats,
    metrics: Metrics,
    (name, transport): (String, Transport),
    stop: CancellationToken,
) {
    let relay = HeartbeatRelay {
        core,
        heartbeats,
        metrics,
        name,
        transport,
    };
    let mut backoff = Backoff::new(Backoff::DEFAULT.0, RECONNECT_MAX);
    let mut rng = relay.core.ids.child("liveness").rng();
    loop {
        let Some(leader) = relay.core.replica.leader(CONTROLLER) else {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(NO_LEADER_WAIT) => continue,
            }
        };
        let started = Instant::now();
        let ended = tokio::select! {
            () = stop.cancelled() => return,
            ended = relay.follow(&leader) => ended,
        };
        relay.heartbeats.lock().disconnected();
        relay.metrics.liveness_reconnects.inc();
        debug!(
            address = leader.address,
            reason = ended.message(),
            "stream to the controller ended"
        );
        if started.elapsed() > ANSWER_TIMEOUT {
            // It worked for a while, so the next stream starts without a backoff.
            backoff.reset();
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(backoff.next(&mut rng)) => {}
        }
    }
}

/// The loop's part of the gateway.
struct HeartbeatRelay {
    core: Arc<Core>,
    heartbeats: SharedHeartbeats,
    metrics: Metrics,
    /// The gateway's name.
    name: String,
    transport: Transport,
}

impl HeartbeatRelay {
    /// Passes heartbeats on to one leader until the stream ends; returns the reason.
    async fn follow(&self, leader: &LeaderInfo) -> Status {
        match open(&self.transport, leader).await {
            Ok((sender, mut acks)) => {
                info!(
                    address = leader.address,
                    "passing heartbeats on to the controller"
                );
                self.relay_to(leader, &sender, &mut acks).await
            }
            Err(status) => status,
        }
    }

    async fn relay_to(
        &self,
        leader: &LeaderInfo,
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
                    if self.core.replica.leader(CONTROLLER).as_ref() != Some(leader) {
                        return Status::aborted("another replica leads now");
                    }
                    if unanswered > 0 && acked_at.elapsed() > ANSWER_TIMEOUT {
                        return Status::deadline_exceeded("the controller does not answer");
                    }
                    let message = self.heartbeats.lock().next_message(Instant::now().into_std());
                    self.metrics.liveness_pending.set(self.pending());
                    let Some((sequence, nodes)) = message else { continue };
                    if unanswered == 0 {
                        acked_at = Instant::now();
                    }
                    unanswered += 1;
                    let has_heartbeats = !nodes.is_empty();
                    let node_ids = nodes.iter().map(ToString::to_string).collect();
                    let message = NodesAlive { gateway: self.name.clone(), node_ids, sequence };
                    if timeout(ANSWER_TIMEOUT, sender.send(message)).await.is_err() {
                        return Status::deadline_exceeded("the controller does not take messages");
                    }
                    self.metrics.liveness_messages.inc_by(u64::from(has_heartbeats));
                }
                ack = acks.message() => match ack {
                    Ok(Some(ack)) => {
                        self.heartbeats.lock().acked(ack.sequence);
                        acked_at = Instant::now();
                        unanswered = unanswered.saturating_sub(1);
                    }
                    Ok(None) => return Status::unavailable("the controller ended the stream"),
                    Err(status) => return status,
                },
            }
        }
    }

    fn pending(&self) -> i64 {
        i64::try_from(self.heartbeats.lock().pending_count()).unwrap_or(i64::MAX)
    }
}

async fn open(
    transport: &Transport,
    leader: &LeaderInfo,
) -> Result<(mpsc::Sender<NodesAlive>, Streaming<LivenessAck>), Status> {
    let channel = transport
        .connect_lazy(&leader.address, Role::Controller)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    let (sender, receiver) = mpsc::channel(SEND_AHEAD);
    let messages = request(ReceiverStream::new(receiver), ANSWER_TIMEOUT);
    let response = LivenessClient::new(channel).report(messages).await?;
    Ok((sender, response.into_inner()))
}
