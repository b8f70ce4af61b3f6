//! The performer of the broker's effects: it sends deliveries, answers RPCs and starts writes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use broker::{Delivery, Effect, NotOutstanding, RequestId, ReturnReason, SessionId};
use model::{EvalId, Timestamp};
use proto::internal::v1 as wire;
use service_kit::SpanParent as _;
use store::Replica;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info_span, warn};

use crate::handle::Outgoing;
use crate::metrics::Metrics;
use crate::writes::{Job, Writes, Written};

/// Running and queued writes at most. Further ones are dropped and the broker requests them again, so
/// a slow store is not overloaded.
const WRITES_MAX: usize = 64;

pub(crate) struct Performer {
    replica: Replica,
    metrics: Metrics,
    nack_timeout: Duration,
    sessions: HashMap<SessionId, Outgoing>,
    /// RPCs that wait for their reply, which comes in the same step.
    replies: HashMap<RequestId, oneshot::Sender<Result<(), NotOutstanding>>>,
    request_count: u64,
    writes: Arc<Writes>,
    writing: JoinSet<Written>,
    /// Cancelled when a write finds another leader.
    deposed: CancellationToken,
}

impl Performer {
    /// The request of an ack whose sender waits for no reply.
    pub(crate) const NO_REPLY: RequestId = RequestId(0);

    pub(crate) fn new(
        writes: Writes,
        replica: Replica,
        metrics: Metrics,
        nack_timeout: Duration,
    ) -> Self {
        Self {
            replica,
            metrics,
            nack_timeout,
            sessions: HashMap::new(),
            replies: HashMap::new(),
            request_count: 0,
            writes: Arc::new(writes),
            writing: JoinSet::new(),
            deposed: CancellationToken::new(),
        }
    }

    pub(crate) fn connect(&mut self, session: SessionId, deliveries: Outgoing) {
        self.sessions.insert(session, deliveries);
    }

    pub(crate) fn disconnect(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    pub(crate) fn expect_reply(
        &mut self,
        reply: oneshot::Sender<Result<(), NotOutstanding>>,
    ) -> RequestId {
        self.request_count += 1;
        let request = RequestId(self.request_count);
        self.replies.insert(request, reply);
        request
    }

    /// Performs the effects of one step. Never waits: deliveries are queued, writes are started.
    pub(crate) fn perform(&mut self, now: Timestamp, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Deliver(delivery) => self.deliver(&delivery),
                Effect::Reply { request, result } => {
                    if let Some(reply) = self.replies.remove(&request) {
                        // The caller may have given up.
                        let _ = reply.send(result);
                    }
                }
                Effect::Fail {
                    eval_id,
                    follow_up_after,
                } => self.write(Job::Fail {
                    eval_id,
                    follow_up_after,
                    now,
                }),
                Effect::Cancel { eval_ids } => self.write(Job::Cancel { eval_ids, now }),
                Effect::Returned {
                    eval_id,
                    reason,
                    next,
                } => self.note_return(now, eval_id, reason, next),
                Effect::Answered {
                    eval_id,
                    job_type,
                    processing,
                    response,
                } => {
                    self.metrics.answered(job_type, processing, response);
                    debug!(%eval_id, ?processing, "evaluation answered");
                }
            }
        }
    }

    fn deliver(&mut self, delivery: &Delivery) {
        let span = info_span!(
            "deliver",
            eval_id = %delivery.eval_id,
            attempt = delivery.attempt,
            waited_ms = millis(delivery.waited),
            job_id = tracing::field::Empty,
            namespace = tracing::field::Empty,
        );
        if let Some(eval) = self.replica.snapshot().eval(delivery.eval_id) {
            span.set_parent_from(&eval.value.trace_parent);
            span.record("job_id", &*eval.value.job.job_id);
            span.record("namespace", &*eval.value.job.namespace);
        }
        let _entered = span.enter();
        self.metrics.delivered(delivery);
        let message = wire::Delivery {
            eval_id: delivery.eval_id.to_string(),
            token: delivery.token.to_string(),
            wait_index: delivery.wait_index,
            attempt: u32::from(delivery.attempt),
            nack_timeout: self.nack_timeout.try_into().ok(),
        };
        let sent = self
            .sessions
            .get(&delivery.session)
            .is_some_and(|outgoing| outgoing.try_send(Ok(message)).is_ok());
        if !sent {
            // The worker has disconnected, which its stream reports too; the nack timeout covers this.
            debug!("the worker is gone");
            self.sessions.remove(&delivery.session);
        }
    }

    fn note_return(
        &self,
        now: Timestamp,
        eval_id: EvalId,
        reason: ReturnReason,
        next: Option<Timestamp>,
    ) {
        self.metrics.returned(reason);
        match next {
            Some(at) => {
                let again_in = at.since(now);
                debug!(%eval_id, reason = reason.as_str(), ?again_in, "evaluation returned");
            }
            None => {
                warn!(%eval_id, reason = reason.as_str(), "evaluation reached its delivery limit")
            }
        }
    }

    fn write(&mut self, job: Job) {
        if self.writing.len() >= WRITES_MAX {
            debug!("too many concurrent writes: the eval-broker requests this one again");
            return;
        }
        let writes = Arc::clone(&self.writes);
        self.writing.spawn(async move { writes.perform(job).await });
    }

    /// Resolves when a write has ended; never while none is under way.
    pub(crate) async fn written(&mut self) {
        match self.writing.join_next().await {
            Some(Ok(Written::Deposed)) => self.deposed.cancel(),
            Some(Ok(Written::Done | Written::Nothing)) => {}
            Some(Err(error)) => warn!(%error, "a write panicked"),
            None => std::future::pending().await,
        }
    }

    /// Resolves when a write has found another leader.
    pub(crate) fn deposed(&self) -> impl Future<Output = ()> + use<> {
        self.deposed.clone().cancelled_owned()
    }

    /// Finishes started writes; the process's grace period bounds this.
    pub(crate) async fn finish(&mut self) {
        self.sessions.clear();
        while self.writing.join_next().await.is_some() {}
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
