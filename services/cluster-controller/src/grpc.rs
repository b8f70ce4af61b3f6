//! The RPC: gateways report who is alive.

use std::time::Duration;

use proto::internal::v1::liveness_server::Liveness;
use proto::internal::v1::{LivenessAck, NodesAlive};
use proto::status;
use store::Replica;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{debug, warn};

use crate::SERVICE;
use crate::metrics::Metrics;
use crate::report::Reports;

/// Acknowledgements that may wait for a gateway to read them; it reads at once or is gone.
const WAITING_ACKS: usize = 16;

/// How long a gateway may say nothing: it reports several times a second, and nothing at all when
/// it has no node, so this only ends streams whose other end has vanished.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Service {
    pub(crate) reports: Reports,
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
