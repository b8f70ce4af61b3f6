//! Keeps a session with the eval-broker's leader open: grants credit, takes deliveries, and never
//! holds more evaluations than it has granted (`in_flight`).

use std::sync::Arc;
use std::time::Duration;

use proto::internal::v1::eval_broker_client::EvalBrokerClient;
use proto::internal::v1::{AckRequest, Delivery, DequeueRequest};
use service_kit::{Backoff, IdSource};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};
use tracing::{debug, info};

use crate::in_flight::{CREDIT_MAX, InFlightEvaluations, Progress};
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
    /// Evaluations that are scheduled concurrently.
    pub(crate) workers: u32,
    pub(crate) ids: IdSource,
}

impl Sessions {
    /// Takes and works on evaluations until drained; then finishes those it has begun.
    pub(crate) async fn run(self, drain: CancellationToken) {
        let mut backoff = Backoff::new(RETRY.0, RETRY.1);
        let mut in_flight = InFlightEvaluations::new(self.workers);
        while !drain.is_cancelled() {
            match self.open(in_flight.room(0)).await {
                Ok(session) => {
                    info!("taking evaluations");
                    backoff.reset();
                    let why = self.take(session, &mut in_flight, &drain).await;
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
        if in_flight.count() > 0 {
            info!(
                evals = in_flight.count(),
                "finishing the evaluations that have begun"
            );
        }
        in_flight.finish().await;
    }

    async fn open(&self, credit: u32) -> Result<Session, String> {
        let broker = self.broker.find().map_err(|error| error.to_string())?;
        // One message waits for each evaluation at most: a grant for each delivery that has ended.
        let (requests, outgoing) = mpsc::channel(CREDIT_MAX as usize + 1);
        let greeting = DequeueRequest {
            credit,
            types: self.job_types.clone(),
            worker: self.name.clone(),
            acked: Vec::new(),
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
        let (on_ack, acks) = mpsc::unbounded_channel();
        Ok(Session {
            requests,
            deliveries,
            broker,
            credit,
            acks,
            on_ack,
        })
    }

    /// Works on the deliveries of one session; returns the reason of its end.
    async fn take(
        &self,
        mut session: Session,
        in_flight: &mut InFlightEvaluations,
        drain: &CancellationToken,
    ) -> String {
        let why = self.serve(&mut session, in_flight, drain).await;
        session.end().await;
        why
    }

    async fn serve(
        &self,
        session: &mut Session,
        in_flight: &mut InFlightEvaluations,
        drain: &CancellationToken,
    ) -> String {
        let broker = session.broker.clone();
        let on_ack = session.on_ack.clone();
        let succeeded = broker.succeeded();
        tokio::pin!(succeeded);
        loop {
            tokio::select! {
                // A suspended leader never reports the end of its leadership.
                () = &mut succeeded => return SUCCEEDED.to_owned(),
                // Dropping the stream tells the eval-broker that no more will be taken.
                () = drain.cancelled() => return "draining".to_owned(),
                change = in_flight.changed() => {
                    // While enough is granted, a grant can wait for the next ack.
                    let can_wait = change == Progress::Scheduled && !in_flight.needs(session.credit);
                    if !can_wait && !session.send_acks(in_flight).await {
                        return "the eval-broker hung up".to_owned();
                    }
                }
                delivery = session.deliveries.message() => match delivery {
                    Ok(Some(delivery)) => {
                        session.credit = session.credit.saturating_sub(1);
                        self.start(delivery, (&broker, &on_ack), in_flight, drain);
                    }
                    Ok(None) => return "the eval-broker ended it".to_owned(),
                    Err(status) => return describe(&status),
                },
            }
        }
    }

    fn start(
        &self,
        delivery: Delivery,
        (broker, acks): (&Found, &mpsc::UnboundedSender<AckRequest>),
        in_flight: &mut InFlightEvaluations,
        drain: &CancellationToken,
    ) {
        let worker = Arc::clone(&self.worker);
        // Answers go to the eval-broker that delivered: another knows nothing of the token.
        let broker = Broker::new(broker.clone(), acks.clone());
        let drain = drain.clone();
        in_flight.start(|unscheduled| async move {
            worker.work(delivery, broker, unscheduled, drain).await;
        });
    }
}

struct Session {
    requests: mpsc::Sender<DequeueRequest>,
    deliveries: Streaming<Delivery>,
    broker: Found,
    /// Granted deliveries that have not come yet.
    credit: u32,
    /// Completed deliveries that the eval-broker does not know of yet.
    acks: mpsc::UnboundedReceiver<AckRequest>,
    on_ack: mpsc::UnboundedSender<AckRequest>,
}

impl Session {
    /// Sends acks and grants credit for the room in `in_flight`, in one message; `false`: the eval-broker is
    /// gone.
    async fn send_acks(&mut self, in_flight: &InFlightEvaluations) -> bool {
        let mut acked = Vec::new();
        while let Ok(ack) = self.acks.try_recv() {
            acked.push(ack);
        }
        let credit = in_flight.room(self.credit);
        if credit == 0 && acked.is_empty() {
            return true;
        }
        self.credit += credit;
        let message = DequeueRequest {
            credit,
            acked,
            ..DequeueRequest::default()
        };
        self.requests.send(message).await.is_ok()
    }

    /// Ends the stream, and sends the acks that it did not carry by calls of their own, as later ones are.
    async fn end(mut self) {
        // The eval-broker delivers no more meanwhile.
        drop((self.requests, self.deliveries));
        self.acks.close();
        let mut left = Vec::new();
        while let Ok(ack) = self.acks.try_recv() {
            left.push(ack);
        }
        Broker::new(self.broker, self.on_ack).ack_all(left).await;
    }
}

fn describe(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}
