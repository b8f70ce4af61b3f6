//! The RPCs: gateways report heartbeats and forward requests of operators.

use std::time::Duration;

use proto::internal::v1::liveness_server::Liveness;
use proto::internal::v1::maintenance_server::Maintenance;
use proto::internal::v1::{CollectGarbageRequest, CollectGarbageResponse, LivenessAck, NodesAlive};
use proto::status;
use store::Replica;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{debug, warn};

use crate::SERVICE;
use crate::garbage::Requests;
use crate::metrics::Metrics;
use crate::report::Reports;

/// Buffered acknowledgements for one gateway; it reads them at once unless it is gone.
const WAITING_ACKS: usize = 16;

/// The longest silence of a gateway's stream: it sends several messages per TTL. The timeout ends
/// the streams of vanished gateways.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) reports: Reports,
    pub(crate) requests: Requests,
    pub(crate) replica: Replica,
    pub(crate) metrics: Metrics,
}

impl Service {
    fn not_leader(&self) -> Status {
        let leader = self.replica.leader(SERVICE).map(|leader| leader.address);
        status::not_leader(leader.as_deref())
    }
}

#[tonic::async_trait]
impl Liveness for Service {
    type ReportStream = ReceiverStream<Result<LivenessAck, Status>>;

    async fn report(
        &self,
        request: Request<Streaming<NodesAlive>>,
    ) -> Result<Response<Self::ReportStream>, Status> {
        let connection = self.reports.connect().ok_or_else(|| self.not_leader())?;
        let mut incoming = request.into_inner();
        let (acks, answers) = mpsc::channel(WAITING_ACKS);
        let metrics = self.metrics.clone();
        let deposed = self.not_leader();
        tokio::spawn(async move {
            loop {
                let message = match tokio::time::timeout(IDLE_TIMEOUT, incoming.message()).await {
                    Ok(Ok(Some(message))) => message,
                    Ok(Ok(None)) => return,
                    Ok(Err(error)) => return debug!(%error, "the stream of a gateway ended"),
                    Err(_) => return debug!("a gateway sends no reports: closing its stream"),
                };
                metrics.heartbeats.inc_by(message.node_ids.len() as u64);
                let nodes = read_ids(&message);
                let answer = if connection.put(&message.gateway, nodes) {
                    Ok(LivenessAck {
                        sequence: message.sequence,
                    })
                } else {
                    Err(deposed.clone())
                };
                let over = answer.is_err();
                if acks.send(answer).await.is_err() || over {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(answers)))
    }
}

/// The retry delay that is suggested while the queue of sweeps is full.
const SWEEP_RETRY_AFTER: Duration = Duration::from_secs(5);

#[tonic::async_trait]
impl Maintenance for Service {
    async fn collect_garbage(
        &self,
        _request: Request<CollectGarbageRequest>,
    ) -> Result<Response<CollectGarbageResponse>, Status> {
        let queue = self.requests.sender().ok_or_else(|| self.not_leader())?;
        let (reply, report) = oneshot::channel();
        if let Err(error) = queue.try_send(reply) {
            return Err(match error {
                TrySendError::Full(_) => {
                    let message = "the queue of garbage collections is full: retry later";
                    status::exhausted(message, SWEEP_RETRY_AFTER)
                }
                TrySendError::Closed(_) => self.not_leader(),
            });
        }
        // The loop ends with the term, and drops the queued replies.
        let report = report.await.map_err(|_| self.not_leader())?;
        let report = report.map_err(Status::unavailable)?;
        let collected = report.collected;
        Ok(Response::new(CollectGarbageResponse {
            evaluations: collected.evals,
            allocations: collected.allocs,
            jobs: collected.jobs,
            deployments: collected.deployments,
            nodes: collected.nodes,
            conflicts: report.conflicts,
        }))
    }
}

/// Returns the valid ids; an invalid one does not void the rest of the report.
fn read_ids(message: &NodesAlive) -> Vec<model::NodeId> {
    let mut ids = Vec::with_capacity(message.node_ids.len());
    for text in &message.node_ids {
        match text.parse() {
            Ok(id) => ids.push(id),
            Err(error) => {
                warn!(gateway = message.gateway, %error, "a heartbeat report has an invalid node id")
            }
        }
    }
    ids
}
