//! The RPCs: gateways report who is alive, and pass on what operators ask for.

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

/// Acknowledgements that may wait for a gateway to read them; it reads at once or is gone.
const WAITING_ACKS: usize = 16;

/// How long a gateway may say nothing: it reports several times a second, and nothing at all when
/// it has no node, so this only ends streams whose other end has vanished.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

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
                let message = match tokio::time::timeout(SILENCE_LIMIT, incoming.message()).await {
                    Ok(Ok(Some(message))) => message,
                    Ok(Ok(None)) => return,
                    Ok(Err(error)) => return debug!(%error, "a gateway's report ended"),
                    Err(_) => return debug!("a gateway has fallen silent"),
                };
                metrics.heartbeats.inc_by(message.node_ids.len() as u64);
                let nodes = read_ids(&message);
                let answer = if connection.send(nodes).await {
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

/// When to ask again while many wait for a sweep.
const SWEEP_RETRY_AFTER: Duration = Duration::from_secs(5);

#[tonic::async_trait]
impl Maintenance for Service {
    async fn collect_garbage(
        &self,
        _request: Request<CollectGarbageRequest>,
    ) -> Result<Response<CollectGarbageResponse>, Status> {
        let term = self.requests.term().ok_or_else(|| self.not_leader())?;
        let (answer, report) = oneshot::channel();
        if let Err(error) = term.try_send(answer) {
            return Err(match error {
                TrySendError::Full(_) => {
                    let message = "many wait for a garbage collection already: ask again later";
                    status::exhausted(message, SWEEP_RETRY_AFTER)
                }
                TrySendError::Closed(_) => self.not_leader(),
            });
        }
        // The loop ends with the term, and drops whoever waits.
        let report = report.await.map_err(|_| self.not_leader())?;
        let report = report.map_err(Status::unavailable)?;
        let collected = report.collected;
        Ok(Response::new(CollectGarbageResponse {
            evaluations: collected.evals,
            allocations: collected.allocs,
            jobs: collected.jobs,
            deployments: collected.deployments,
            nodes: collected.nodes,
            overtaken: report.overtaken,
        }))
    }
}

/// Returns the ids that are ids; the rest of a report still counts.
fn read_ids(message: &NodesAlive) -> Vec<model::NodeId> {
    let mut ids = Vec::with_capacity(message.node_ids.len());
    for text in &message.node_ids {
        match text.parse() {
            Ok(id) => ids.push(id),
            Err(error) => warn!(gateway = message.gateway, %error, "not a node id in a report"),
        }
    }
    ids
}
