//! A broker that delivers a test's evaluations and remembers the answers, and a plan-applier that
//! answers as a test says and otherwise commits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use applier::PlanVerification;
use model::{Plan, PlanResult, Timestamp};
use proto::internal::v1::eval_broker_server::EvalBroker;
use proto::internal::v1::plan_applier_server::PlanApplier;
use proto::internal::v1::{
    AckRequest, AckResponse, Delivery, DequeueRequest, ExtendRequest, ExtendResponse, NackRequest,
    NackResponse, StatsRequest, StatsResponse, SubmitPlanRequest, SubmitPlanResponse,
};
use store::{Commit, Replica};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// Long enough for a loaded machine, short enough to notice.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A worker's message to the broker; messages are kept in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Opened { credit: u32, types: Vec<String> },
    Granted(u32),
    Ack(String),
    Nack(String),
    Extend(String),
}

/// The broker's end of a stream of deliveries.
type Session = mpsc::Sender<Result<Delivery, Status>>;

#[derive(Clone, Default)]
pub(crate) struct FakeBroker {
    pub(crate) received: Arc<Mutex<Vec<Received>>>,
    /// To the newest session.
    pub(crate) session: Arc<Mutex<Option<Session>>>,
    /// Tokens that are not outstanding any more.
    pub(crate) taken_back: Arc<Mutex<Vec<String>>>,
}

impl FakeBroker {
    fn tell(&self, received: Received) {
        self.received.lock().unwrap().push(received);
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub(crate) fn deliver(&self, delivery: Delivery) {
        let session = self.session.lock().unwrap().clone();
        session.unwrap().try_send(Ok(delivery)).unwrap();
    }

    /// Ends the session, as a leader does whose term is over.
    pub(crate) fn hang_up(&self) {
        self.session.lock().unwrap().take();
    }
}

#[tonic::async_trait]
impl EvalBroker for FakeBroker {
    type DequeueStream = ReceiverStream<Result<Delivery, Status>>;

    async fn dequeue(
        &self,
        request: Request<Streaming<DequeueRequest>>,
    ) -> Result<Response<Self::DequeueStream>, Status> {
        let mut incoming = request.into_inner();
        let greeting = incoming.message().await?.unwrap();
        let (sender, receiver) = mpsc::channel(16);
        *self.session.lock().unwrap() = Some(sender);
        self.tell(Received::Opened {
            credit: greeting.credit,
            types: greeting.types,
        });
        let received = self.clone();
        tokio::spawn(async move {
            while let Ok(Some(message)) = incoming.message().await {
                for ack in message.acked {
                    received.tell(Received::Ack(ack.token));
                }
                if message.credit > 0 {
                    received.tell(Received::Granted(message.credit));
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn ack(&self, request: Request<AckRequest>) -> Result<Response<AckResponse>, Status> {
        self.tell(Received::Ack(request.into_inner().token));
        Ok(Response::new(AckResponse {}))
    }

    async fn nack(&self, request: Request<NackRequest>) -> Result<Response<NackResponse>, Status> {
        self.tell(Received::Nack(request.into_inner().token));
        Ok(Response::new(NackResponse {}))
    }

    async fn extend(
        &self,
        request: Request<ExtendRequest>,
    ) -> Result<Response<ExtendResponse>, Status> {
        let token = request.into_inner().token;
        self.tell(Received::Extend(token.clone()));
        if self.taken_back.lock().unwrap().contains(&token) {
            return Err(Status::not_found("not outstanding"));
        }
        Ok(Response::new(ExtendResponse {}))
    }

    async fn stats(&self, _: Request<StatsRequest>) -> Result<Response<StatsResponse>, Status> {
        Err(Status::unimplemented("not used"))
    }
}

/// The plan-applier's answer to one plan.
pub(crate) enum Answer {
    Commit,
    /// Commits and never says so.
    CommitSilently,
    Refuse,
    /// Leaves out the nodes beyond the first so many.
    CommitNodes(usize),
    /// The same, without a word on where that can be seen.
    CommitNodesSilently(usize),
    Fail(Status),
    /// Answers when told.
    Hold(tokio::sync::oneshot::Receiver<()>),
}

#[derive(Clone)]
pub(crate) struct FakeApplier {
    pub(crate) replica: Replica,
    /// The next answers; beyond them plans are committed.
    pub(crate) answers: Arc<Mutex<VecDeque<Answer>>>,
    pub(crate) plans: Arc<Mutex<Vec<Plan>>>,
}

impl FakeApplier {
    async fn commit(&self, plan: &Plan) -> PlanResult {
        let snapshot = self.replica.linearizable(TIMEOUT).await.unwrap();
        let accepted = match applier::verify(&snapshot, plan, Timestamp(1)) {
            PlanVerification::Accepted(accepted) => accepted,
            PlanVerification::Refused(refusal) => {
                return PlanResult {
                    refused: Some(refusal.reason),
                    refresh_index: refusal.refresh_index,
                    ..PlanResult::default()
                };
            }
            PlanVerification::Waits => panic!("nothing is on its way"),
        };
        let mut result = PlanResult::default();
        let writer = self.replica.client().unfenced_writer();
        for piece in &accepted.pieces {
            let txn = writer.txn().with(&piece.ops).unwrap();
            let Commit::Done { revision } = writer.commit(&txn).await.unwrap() else {
                panic!("no other writer")
            };
            result.commit_index = revision;
            result
                .placed
                .extend(piece.ops.iter().filter_map(state::Write::created_alloc));
        }
        result
    }
}

#[tonic::async_trait]
impl PlanApplier for FakeApplier {
    async fn submit(
        &self,
        request: Request<SubmitPlanRequest>,
    ) -> Result<Response<SubmitPlanResponse>, Status> {
        let plan: Plan = request.into_inner().plan.unwrap().try_into().unwrap();
        self.plans.lock().unwrap().push(plan.clone());
        let answer = self
            .answers
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or(Answer::Commit);
        let result = match answer {
            Answer::Commit => self.commit(&plan).await,
            Answer::CommitSilently => {
                self.commit(&plan).await;
                return Err(Status::unavailable("the connection broke"));
            }
            Answer::Hold(released) => {
                let _ = released.await;
                self.commit(&plan).await
            }
            Answer::Refuse => PlanResult {
                refused: Some("no luck".into()),
                refresh_index: self.replica.applied(),
                ..PlanResult::default()
            },
            answer @ (Answer::CommitNodes(count) | Answer::CommitNodesSilently(count)) => {
                let mut part = plan.clone();
                let left_out = plan.placements.keys().skip(count);
                let left_out = left_out.map(|node| (*node, "no room".to_owned()));
                let left_out: BTreeMap<_, _> = left_out.collect();
                part.placements
                    .retain(|node, _| !left_out.contains_key(node));
                part.eval_outcome = None;
                part.followup_evals.clear();
                let mut result = self.commit(&part).await;
                result.rejected_nodes = left_out;
                if matches!(answer, Answer::CommitNodes(_)) {
                    result.refresh_index = result.commit_index;
                }
                result
            }
            Answer::Fail(status) => return Err(status),
        };
        Ok(Response::new((&result).into()))
    }
}
