//! Keeps a session with the eval-broker's leader open: grants credit, takes deliveries, and never
//! holds more evaluations than there are workers.

use std::sync::Arc;
use std::time::Duration;

use proto::internal::v1::eval_broker_client::EvalBrokerClient;
use proto::internal::v1::{Delivery, DequeueRequest};
use service_kit::{Backoff, IdSource};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};
use tracing::{debug, info, warn};

use crate::peers::{Found, Leader};
use crate::work::{Broker, Worker};

/// The time limit for opening a session with the eval-broker.
const OPEN_DEADLINE: Duration = Duration::from_secs(5);

/// The backoff between attempts to find the eval-broker: a failover takes seconds, and the first worker to
/// connect gets work at once.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// The end of a session whose eval-broker was succeeded.
const SUCCEEDED: &str = "another eval-broker leads";

/// The settings of sessions.
pub(crate) struct Sessions {
    pub(crate) worker: Arc<Worker>,
    pub(crate) broker: Leader,
    pub(crate) name: String,
    pub(crate) job_types: Vec<String>,
    pub(crate) capacity: u32,
    pub(crate) ids: IdSource,
}

impl Sessions {
    /// Takes and works on evaluations until drained; then finishes those it has begun.
    pub(crate) async fn run(self, drain: CancellationToken) {
        let mut backoff = Backoff::new(RETRY.0, RETRY.1);
        let mut in_hand = JoinSet::new();
        while !drain.is_cancelled() {
            match self.open(in_hand.len()).await {
                Ok(session) => {
                    info!("taking evaluations");
                    backoff.reset();
                    let why = self.take(session, &mut in_hand, &drain).await;
                    debug!(why, "the session ended");
                }
                Err(why) => debug!(why, "no session with the eval-broker"),
            }
            let wait = backoff.next(&mut self.ids.rng());
            tokio::select! {
                () = drain.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        if !in_hand.is_empty() {
            info!(
                evals = in_hand.len(),
                "finishing the evaluations that have begun"
            );
        }
        while in_hand.join_next().await.is_some() {}
    }

    async fn open(&self, busy: usize) -> Result<Session, String> {
        let broker = self.broker.find().map_err(|error| error.to_string())?;
        // One message waits for each worker at most: a grant for each delivery that has ended.
        let (requests, outgoing) = mpsc::channel(self.capacity as usize + 1);
        let busy = u32::try_from(busy).unwrap_or(u32::MAX);
        let greeting = DequeueRequest {
            credit: self.capacity.saturating_sub(busy),
            types: self.job_types.clone(),
            worker: self.name.clone(),
        };
        requests
            .try_send(greeting)
            .map_err(|error| error.to_string())?;
        let mut client = EvalBrokerClient::new(broker.channel.clone());
        let opening = client.dequeue(ReceiverStream::new(outgoing));
        let opened = tokio::select! {
            opened = tokio::time::timeout(OPEN_DEADLINE, opening) => opened,
            () = broker.succeeded() => return Err(SUCCEEDED.to_owned()),
        };
        let deliveries = opened
            .map_err(|_| format!("no answer within {OPEN_DEADLINE:?}"))?
            .map_err(|status| describe(&status))?
            .into_inner();
        Ok(Session {
            requests,
            deliveries,
            broker,
        })
    }

    /// Works on the deliveries of one session; returns the reason of its end.
    async fn take(
        &self,
        mut session: Session,
        in_hand: &mut JoinSet<()>,
        drain: &CancellationToken,
    ) -> String {
        let broker = session.broker.clone();
        let succeeded = broker.succeeded();
        tokio::pin!(succeeded);
        loop {
            tokio::select! {
                // A suspended leader never reports the end of its leadership.
                () = &mut succeeded => return SUCCEEDED.to_owned(),
                // Dropping the stream tells the eval-broker that no more will be taken.
                () = drain.cancelled() => return "draining".to_owned(),
                Some(ended) = in_hand.join_next(), if !in_hand.is_empty() => {
                    if let Err(error) = ended {
                        // The eval-broker delivers it again when its nack timeout is over.
                        warn!(%error, "an evaluation's work panicked");
                    }
                    let grant = DequeueRequest { credit: 1, ..DequeueRequest::default() };
                    if session.requests.send(grant).await.is_err() {
                        return "the eval-broker hung up".to_owned();
                    }
                }
                delivery = session.deliveries.message() => match delivery {
                    Ok(Some(delivery)) => self.start(delivery, &broker, in_hand, drain),
                    Ok(None) => return "the eval-broker ended it".to_owned(),
                    Err(status) => return describe(&status),
                },
            }
        }
    }

    fn start(
        &self,
        delivery: Delivery,
        broker: &Found,
        in_hand: &mut JoinSet<()>,
        drain: &CancellationToken,
    ) {
        let worker = Arc::clone(&self.worker);
        // Answers go to the eval-broker that delivered: another knows nothing of the token.
        let broker = Broker::new(broker.clone());
        let drain = drain.clone();
        in_hand.spawn(async move { worker.work(delivery, broker, drain).await });
    }
}

struct Session {
    requests: mpsc::Sender<DequeueRequest>,
    deliveries: Streaming<Delivery>,
    broker: Found,
}

fn describe(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}
