//! Processes one delivered evaluation: wait for the index, schedule, submit, answer.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use model::{EvalId, Evaluation, Indexed, Plan, PlanResult, Timestamp};
use proto::internal::v1::eval_broker_client::EvalBrokerClient;
use proto::internal::v1::plan_applier_client::PlanApplierClient;
use proto::internal::v1::{AckRequest, Delivery, ExtendRequest, NackRequest, SubmitPlanRequest};
use scheduler::load::{is_quick, is_small};
use scheduler::{Attempt, Decision, PlanOutcome, Run};
use service_kit::{Backoff, Clock, IdSource, SpanParent as _, TracedChannel};
use state::Snapshot;
use store::Replica;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};
use tracing::{Instrument as _, Span, debug, info_span, warn};

use crate::in_flight::Unscheduled;
use crate::metrics::Metrics;
use crate::peers::{Found, Leader};

/// The time limit for the replica to reach an index. Source: Nomad's public behaviour. A slower
/// replica has a problem, and another worker should get the evaluation.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(5);

/// The deadline of one submission: the plan waits in the applier's queue meanwhile, behind others.
const SUBMIT_DEADLINE: Duration = Duration::from_secs(30);

/// The time for which a plan is resubmitted while the plan-applier has no leader: several
/// elections.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The backoff between submissions without a leader.
const SUBMIT_RETRY: (Duration, Duration) = (Duration::from_millis(25), Duration::from_secs(2));

/// The deadline of an answer to the eval-broker; its nack timeout is the safety net.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// The assumed nack timeout if the eval-broker does not send one; deliveries are extended three times
/// within it.
const NACK_TIMEOUT: Duration = Duration::from_secs(60);

/// Processes deliveries; the session limits those in flight, and `scheduling` those that are scheduled.
pub(crate) struct Worker {
    pub(crate) replica: Replica,
    pub(crate) applier: Leader,
    pub(crate) clock: Clock,
    pub(crate) ids: IdSource,
    pub(crate) metrics: Metrics,
    pub(crate) scheduling: Semaphore,
}

/// An evaluation has to be delivered again.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("eval_id {text:?} is not an id")]
    BadId { text: String },
    #[error("the replica did not reach index {index} in time")]
    Behind { index: u64 },
    #[error("the scheduler panicked")]
    Panicked,
    #[error("plan refused: {reason}")]
    Refused { reason: String },
    #[error("the plan-applier could not be reached: {reason}")]
    Unreachable { reason: String },
    #[error("plans were refused too often")]
    RefusedTooOften,
    #[error("missing state refresh after partial commit")]
    Unrefreshed,
    #[error("draining")]
    Draining,
}

impl Worker {
    /// Processes one delivery and answers it.
    pub(crate) async fn work(
        &self,
        delivery: Delivery,
        broker: Broker,
        unscheduled: Unscheduled,
        drain: CancellationToken,
    ) {
        let span = info_span!(
            "evaluate",
            eval_id = delivery.eval_id,
            attempt = delivery.attempt,
            job_id = tracing::field::Empty,
            namespace = tracing::field::Empty,
        );
        self.metrics.busy.inc();
        let _busy = Busy(&self.metrics);
        let keep = broker.keep(&delivery);
        let result = tokio::select! {
            result = self.process(&delivery, unscheduled, &span, &drain) => result,
            // Another worker gets it: the compares stop a plan in flight.
            () = keep => return debug!(eval_id = delivery.eval_id, "the delivery was revoked"),
        };
        let failure = result.err();
        if let Some(failure) = &failure {
            self.metrics.nacked.inc();
            span.in_scope(|| warn!(%failure, "evaluation nacked"));
        } else {
            self.metrics.acked.inc();
        }
        broker.answer(&delivery, failure).instrument(span).await;
    }

    async fn process(
        &self,
        delivery: &Delivery,
        unscheduled: Unscheduled,
        span: &Span,
        drain: &CancellationToken,
    ) -> Result<(), Failure> {
        let eval_id: EvalId = delivery.eval_id.parse().map_err(|_| Failure::BadId {
            text: delivery.eval_id.clone(),
        })?;
        let mut snapshot = self.snapshot(delivery.wait_index).await?;
        if let Some(eval) = snapshot.eval(eval_id) {
            continue_trace(span, eval);
        }
        let mut run = Run::new(eval_id, delivery.token.clone());
        let mut unscheduled = Some(unscheduled);
        let attempts = async {
            loop {
                let permit = self.permit().await;
                // The newest state: the wait for the permit may have taken a while.
                snapshot = newer(snapshot, self.replica.snapshot());
                let is_quick = is_quick(&snapshot, eval_id);
                let (next, attempt) = self.attempt(run, snapshot.clone(), is_quick).await?;
                run = next;
                let decision = match attempt {
                    Attempt::Submit(decision) => decision,
                    Attempt::Overtaken => return Ok(()),
                };
                let is_small = is_small(&decision.plan);
                let _permit = permit.filter(|_| !is_small);
                if is_small {
                    unscheduled = None;
                }
                let result = self.submit(&decision.plan, drain).await?;
                self.count(&decision, &result);
                match run.evaluate_result(&decision.plan, &result) {
                    PlanOutcome::Done => return Ok(()),
                    PlanOutcome::RefusedTooOften => return Err(Failure::RefusedTooOften),
                    PlanOutcome::Unrefreshed => return Err(Failure::Unrefreshed),
                    PlanOutcome::Retry { refresh_index } => {
                        debug!(refresh_index, refused = ?result.refused, "planning again");
                        snapshot = self.snapshot(refresh_index).await?;
                    }
                }
            }
        };
        attempts.instrument(span.clone()).await
    }

    /// Waits until an evaluation may be scheduled; `None` never comes, because nothing closes it.
    async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.scheduling.acquire().await.ok()
    }

    async fn snapshot(&self, index: u64) -> Result<Snapshot, Failure> {
        let began = Instant::now();
        let snapshot = self.replica.wait_for(index, SNAPSHOT_TIMEOUT).await;
        self.metrics
            .wait_for_index
            .observe(began.elapsed().as_secs_f64());
        snapshot.map_err(|_| Failure::Behind { index })
    }

    /// Runs the scheduler: on a thread for blocking work, because it computes for milliseconds, up to
    /// seconds for a very large job. A quick one takes less than the way to another thread and back.
    async fn attempt(
        &self,
        mut run: Run,
        snapshot: Snapshot,
        is_quick: bool,
    ) -> Result<(Run, Attempt), Failure> {
        let (now, seed) = (Timestamp(self.clock.now()), self.ids.next_u64());
        let began = Instant::now();
        let span = info_span!("schedule", index = snapshot.index());
        let decide = move || {
            let attempt = span.in_scope(|| run.attempt(&snapshot, now, seed));
            (run, attempt)
        };
        let decided = if is_quick {
            catch_unwind(AssertUnwindSafe(decide)).map_err(|_| Failure::Panicked)?
        } else {
            let decided = blocking::spawn(decide);
            decided.await.map_err(|_| Failure::Panicked)?
        };
        self.metrics
            .scheduler_ran(decided.0.job_type(), began.elapsed());
        Ok(decided)
    }

    /// Submits a plan until the plan-applier answers.
    ///
    /// A retry is safe after a lost answer: if the plan was committed, its compares no longer hold.
    /// The retry is refused then, and the next attempt finds the evaluation done.
    async fn submit(&self, plan: &Plan, drain: &CancellationToken) -> Result<PlanResult, Failure> {
        let wire: proto::internal::v1::Plan = plan.into();
        let began = Instant::now();
        let mut backoff = Backoff::new(SUBMIT_RETRY.0, SUBMIT_RETRY.1);
        loop {
            let reason = match self.submit_once(wire.clone()).await {
                Ok(result) => {
                    self.metrics
                        .submit_plan
                        .observe(began.elapsed().as_secs_f64());
                    return Ok(result);
                }
                Err(SubmitFailure::Final(reason)) => return Err(Failure::Refused { reason }),
                Err(SubmitFailure::Passing(reason)) => reason,
            };
            if began.elapsed() > SUBMIT_TIMEOUT {
                return Err(Failure::Unreachable { reason });
            }
            debug!(reason, "the plan will be submitted again");
            let wait = backoff.next(&mut self.ids.rng());
            tokio::select! {
                () = drain.cancelled() => return Err(Failure::Draining),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn submit_once(
        &self,
        plan: proto::internal::v1::Plan,
    ) -> Result<PlanResult, SubmitFailure> {
        let applier = self
            .applier
            .find()
            .map_err(|error| SubmitFailure::Passing(error.to_string()))?;
        self.metrics.plans_submitted.inc();
        let mut client = PlanApplierClient::new(applier.channel.clone())
            .max_encoding_message_size(proto::MAX_PLAN_BYTES)
            .max_decoding_message_size(proto::MAX_PLAN_BYTES);
        let request = service_kit::request(SubmitPlanRequest { plan: Some(plan) }, SUBMIT_DEADLINE);
        let answer = tokio::select! {
            answer = client.submit(request) => answer.map_err(|status| submit_failure(&status))?,
            // A suspended leader would hold the plan until its connection times out. The retry with
            // the next leader shows if this one committed the plan.
            () = applier.succeeded() => {
                return Err(SubmitFailure::Passing("another plan-applier leads".to_owned()));
            }
        };
        answer
            .into_inner()
            .try_into()
            .map_err(|errors: model::FieldErrors| {
                SubmitFailure::Final(format!("cannot decode the plan-applier's answer: {errors}"))
            })
    }

    fn count(&self, decision: &Decision, result: &PlanResult) {
        self.metrics.placements.inc_by(result.placed.len() as u64);
        if result.refused.is_some() || !result.rejected_nodes.is_empty() {
            self.metrics.plans_refused.inc();
        }
        debug!(
            index = result.commit_index,
            planned = decision.plan.placement_count(),
            placed = result.placed.len(),
            rejected_nodes = result.rejected_nodes.len(),
            refused = result.refused,
            "plan answered"
        );
    }
}

enum SubmitFailure {
    /// No plan-applier examined the plan: a retry may succeed.
    Passing(String),
    /// The plan is invalid: a retry would fail too.
    Final(String),
}

fn submit_failure(status: &Status) -> SubmitFailure {
    let reason = format!("{:?}: {}", status.code(), status.message());
    match status.code() {
        Code::InvalidArgument | Code::Unimplemented | Code::PermissionDenied => {
            SubmitFailure::Final(reason)
        }
        _ => SubmitFailure::Passing(reason),
    }
}

fn newer(one: Snapshot, other: Snapshot) -> Snapshot {
    if other.index() > one.index() {
        other
    } else {
        one
    }
}

fn continue_trace(span: &Span, eval: &Indexed<Evaluation>) {
    span.set_parent_from(&eval.value.trace_parent);
    span.record("job_id", &*eval.value.job.job_id);
    span.record("namespace", &*eval.value.job.namespace);
}

struct Busy<'a>(&'a Metrics);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.dec();
    }
}

/// The eval-broker that delivered.
pub(crate) struct Broker {
    found: Found,
    client: EvalBrokerClient<TracedChannel>,
    /// The session's acks.
    acks: mpsc::UnboundedSender<AckRequest>,
}

impl Broker {
    pub(crate) fn new(found: Found, acks: mpsc::UnboundedSender<AckRequest>) -> Self {
        Self {
            client: EvalBrokerClient::new(found.channel.clone()),
            found,
            acks,
        }
    }

    /// Answers a delivery: ack without a failure, nack with one. Gives up when the eval-broker has a
    /// successor, because a former leader ignores answers.
    async fn answer(&self, delivery: &Delivery, failure: Option<Failure>) {
        let answering = async {
            match failure {
                None => self.ack(delivery).await,
                Some(failure) => self.nack(delivery, &failure.to_string()).await,
            }
        };
        tokio::select! {
            () = answering => {}
            () = self.found.succeeded() => {}
        }
    }

    /// Acks on the session, or by a call of its own once the session has ended. Best effort: after a
    /// lost ack, the evaluation is delivered again and found done.
    async fn ack(&self, delivery: &Delivery) {
        let message = AckRequest {
            eval_id: delivery.eval_id.clone(),
            token: delivery.token.clone(),
        };
        if let Err(SendError(message)) = self.acks.send(message) {
            self.ack_alone(message).await;
        }
    }

    /// Acks deliveries without their session. Gives up when the eval-broker has a successor.
    pub(crate) async fn ack_all(&self, messages: Vec<AckRequest>) {
        let acks = messages.into_iter().map(|message| self.ack_alone(message));
        tokio::select! {
            _ = futures::future::join_all(acks) => {}
            () = self.found.succeeded() => {}
        }
    }

    async fn ack_alone(&self, message: AckRequest) {
        let mut client = self.client.clone();
        if let Err(status) = client
            .ack(service_kit::request(message, ANSWER_DEADLINE))
            .await
        {
            debug!(%status, "the eval-broker did not take the ack");
        }
    }

    /// Best effort: after a lost nack, the nack timeout does the same, later.
    async fn nack(&self, delivery: &Delivery, reason: &str) {
        let message = NackRequest {
            eval_id: delivery.eval_id.clone(),
            token: delivery.token.clone(),
            reason: reason.to_owned(),
        };
        let mut client = self.client.clone();
        if let Err(status) = client
            .nack(service_kit::request(message, ANSWER_DEADLINE))
            .await
        {
            debug!(%status, "the eval-broker did not take the nack");
        }
    }

    /// Extends the delivery before its nack timeout, for as long as this is polled; ends when the
    /// broker answers that this worker no longer holds the delivery.
    fn keep(&self, delivery: &Delivery) -> impl Future<Output = ()> + use<> {
        let timeout = delivery
            .nack_timeout
            .and_then(|timeout| Duration::try_from(timeout).ok());
        let pause = timeout.unwrap_or(NACK_TIMEOUT) / 3;
        let mut client = self.client.clone();
        let message = ExtendRequest {
            eval_id: delivery.eval_id.clone(),
            token: delivery.token.clone(),
        };
        async move {
            loop {
                tokio::time::sleep(pause).await;
                let request = service_kit::request(message.clone(), ANSWER_DEADLINE);
                match client.extend(request).await {
                    Err(status) if status.code() == Code::NotFound => return,
                    // A broker that does not answer may be gone: its successor delivers the
                    // evaluation again, and compares refuse the second of two plans.
                    _ => {}
                }
            }
        }
    }
}
