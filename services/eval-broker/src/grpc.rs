//! The RPCs: decode, send to the loop, encode.

use std::time::Duration;

use broker::{JobTypes, NotOutstanding, Token};
use model::{EvalId, FieldError, FieldErrors, JobType};
use proto::internal::v1::eval_broker_server::EvalBroker;
use proto::internal::v1::{
    AckRequest, AckResponse, Delivery, DequeueRequest, ExtendRequest, ExtendResponse, NackRequest,
    NackResponse, StatsRequest, StatsResponse,
};
use proto::status;
use store::Replica;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{Instrument as _, debug, info, info_span};

use crate::SERVICE;
use crate::handle::{Answer, Handle, NotLeading, Session};

/// The time limit for the first message of a worker's session: it sends it at once.
const GREETING_DEADLINE: Duration = Duration::from_secs(5);

pub(crate) struct Service {
    pub(crate) handle: Handle,
    pub(crate) replica: Replica,
}

impl Service {
    fn not_leader(&self, NotLeading: NotLeading) -> Status {
        let leader = self.replica.leader(SERVICE).map(|leader| leader.address);
        status::not_leader(leader.as_deref())
    }

    async fn answer(&self, answer: Answer, eval_id: &str, token: &str) -> Result<(), Status> {
        let (eval_id, token) = read_delivery(eval_id, token)?;
        let result = self.handle.answer(answer, eval_id, token).await;
        result
            .map_err(|error| self.not_leader(error))?
            .map_err(refused)
    }
}

#[tonic::async_trait]
impl EvalBroker for Service {
    type DequeueStream = ReceiverStream<Result<Delivery, Status>>;

    async fn dequeue(
        &self,
        request: Request<Streaming<DequeueRequest>>,
    ) -> Result<Response<Self::DequeueStream>, Status> {
        let mut incoming = request.into_inner();
        let greeting = tokio::time::timeout(GREETING_DEADLINE, incoming.message())
            .await
            .map_err(|_| Status::deadline_exceeded("the first message did not come in time"))??
            .ok_or_else(|| Status::invalid_argument("the session ended before it began"))?;
        let types = read_types(&greeting.types)?;
        let opened = self.handle.open_session(types, greeting.credit).await;
        let (session, deliveries) = opened.map_err(|error| self.not_leader(error))?;
        let span = info_span!("session", worker = greeting.worker);
        span.in_scope(|| info!(credit = greeting.credit, "worker connected"));
        tokio::spawn(listen(session, incoming).instrument(span));
        Ok(Response::new(ReceiverStream::new(deliveries)))
    }

    async fn ack(&self, request: Request<AckRequest>) -> Result<Response<AckResponse>, Status> {
        let message = request.into_inner();
        self.answer(Answer::Ack, &message.eval_id, &message.token)
            .await?;
        Ok(Response::new(AckResponse {}))
    }

    async fn nack(&self, request: Request<NackRequest>) -> Result<Response<NackResponse>, Status> {
        let message = request.into_inner();
        info!(
            eval_id = message.eval_id,
            reason = message.reason,
            "evaluation nacked by its worker"
        );
        self.answer(Answer::Nack, &message.eval_id, &message.token)
            .await?;
        Ok(Response::new(NackResponse {}))
    }

    async fn extend(
        &self,
        request: Request<ExtendRequest>,
    ) -> Result<Response<ExtendResponse>, Status> {
        let message = request.into_inner();
        self.answer(Answer::Extend, &message.eval_id, &message.token)
            .await?;
        Ok(Response::new(ExtendResponse {}))
    }

    async fn stats(&self, _: Request<StatsRequest>) -> Result<Response<StatsResponse>, Status> {
        let stats = self
            .handle
            .stats()
            .await
            .map_err(|error| self.not_leader(error))?;
        Ok(Response::new(StatsResponse {
            ready: stats.ready as u64,
            unacked: stats.unacked as u64,
            pending: stats.pending as u64,
            delayed: stats.waiting as u64,
            blocked: stats.blocked as u64,
            failed: stats.failing as u64,
        }))
    }
}

/// Passes credit and acks on until the worker disconnects or the term is over.
async fn listen(session: Session, mut incoming: Streaming<DequeueRequest>) {
    loop {
        let message = tokio::select! {
            message = incoming.message() => message,
            () = session.ended() => return debug!("the term is over"),
        };
        match message {
            Ok(Some(message)) => {
                let acked = read_acked(&message);
                let taken = async {
                    if !acked.is_empty() {
                        session.ack(acked).await?;
                    }
                    if message.credit > 0 {
                        session.grant(message.credit).await?;
                    }
                    Ok::<_, NotLeading>(())
                };
                if taken.await.is_err() {
                    return debug!("the term is over");
                }
            }
            Ok(None) => break,
            Err(error) => {
                debug!(%error, "a worker's stream broke");
                break;
            }
        }
    }
    info!("worker disconnected");
    session.close().await;
}

/// Reads the job types that a worker accepts; empty: all.
fn read_types(texts: &[String]) -> Result<JobTypes, Status> {
    if texts.is_empty() {
        return Ok(JobTypes::all());
    }
    let parsed: Option<JobTypes> = texts.iter().map(|text| JobType::parse(text)).collect();
    parsed.ok_or_else(|| {
        let known = JobType::ALL.map(JobType::as_str).join(", ");
        status::invalid_field(
            "types",
            format!("{texts:?} has one that is not a job type: {known}"),
        )
    })
}

/// Reads the completed deliveries of a message; one that cannot be read is left to its timeout.
fn read_acked(message: &DequeueRequest) -> Vec<(EvalId, Token)> {
    let read = |ack: &AckRequest| match read_delivery(&ack.eval_id, &ack.token) {
        Ok(delivery) => Some(delivery),
        Err(status) => {
            debug!(%status, "a worker's ack cannot be read");
            None
        }
    };
    message.acked.iter().filter_map(read).collect()
}

fn read_delivery(eval_id: &str, token: &str) -> Result<(EvalId, Token), Status> {
    let mut errors = Vec::new();
    let eval_id = eval_id
        .parse::<EvalId>()
        .map_err(|error| errors.push(FieldError::new("eval_id", error.to_string())));
    let token = token
        .parse::<Token>()
        .map_err(|error| errors.push(FieldError::new("token", error.to_string())));
    match (eval_id, token) {
        (Ok(eval_id), Ok(token)) => Ok((eval_id, token)),
        _ => Err(status::invalid(FieldErrors(errors))),
    }
}

fn refused(refusal: NotOutstanding) -> Status {
    Status::not_found(refusal.to_string())
}
