//! Requests for the store's revision, shared by many readers.
//!
//! A linearizable read needs a revision that the store had after the read came in. All reads that
//! come in while one request is under way share the next one, so the load on the store does not
//! depend on the number of readers.

use store::{Client, Error};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// The largest number of queued readers. Further ones wait for room in the queue, which their
/// deadlines bound.
const QUEUE: usize = 4_096;

type Reply = oneshot::Sender<Result<u64, std::sync::Arc<Error>>>;

/// A handle of the loop that asks the store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Revisions {
    requests: mpsc::Sender<Reply>,
}

impl Revisions {
    /// Starts the loop among `loops`; it ends with `stop`.
    pub fn start(
        client: Client,
        metrics: Metrics,
        stop: CancellationToken,
        loops: &mut JoinSet<()>,
    ) -> Self {
        let (requests, receiver) = mpsc::channel(QUEUE);
        loops.spawn(run(client, receiver, metrics, stop));
        Self { requests }
    }

    /// Returns a revision that includes every write acknowledged before the call; `None` when the
    /// loop has ended.
    pub async fn current(&self) -> Option<Result<u64, std::sync::Arc<Error>>> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(reply).await.ok()?;
        answer.await.ok()
    }
}

async fn run(
    client: Client,
    mut requests: mpsc::Receiver<Reply>,
    metrics: Metrics,
    stop: CancellationToken,
) {
    let mut waiting = Vec::new();
    loop {
        let received = tokio::select! {
            () = stop.cancelled() => return,
            received = requests.recv_many(&mut waiting, QUEUE) => received,
        };
        if received == 0 {
            return;
        }
        metrics.revision_reads.inc();
        let revision = tokio::select! {
            () = stop.cancelled() => return,
            revision = client.current_revision() => revision.map_err(std::sync::Arc::new),
        };
        for reply in waiting.drain(..) {
            // The reader may have given up.
            let _ = reply.send(revision.clone());
        }
    }
}
