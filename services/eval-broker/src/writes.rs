//! The transactions of the broker: evaluations that fail, and canceled ones.

use std::time::Duration;

use broker::outcome;
use model::{EvalId, Timestamp};
use service_kit::{IdSource, SpanParent as _};
use store::{CommitOutcome, Replica, Settled, SizeClass, Txn, Writer};
use tokio::sync::Semaphore;
use tracing::{Instrument as _, debug, info, info_span, warn};

use crate::metrics::Metrics;

/// Concurrent writes: they are background work and must leave the store to plans.
const WRITES_IN_FLIGHT: usize = 4;

/// The time for which one write may be in doubt. The broker requests it again after twice that.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// A requested write.
pub(crate) enum Job {
    Fail {
        eval_id: EvalId,
        follow_up_after: Duration,
        now: Timestamp,
    },
    Cancel {
        eval_ids: Vec<EvalId>,
        now: Timestamp,
    },
}

/// The result of a write. The broker requests failed writes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// Not written: nothing to write, a conflict, or an error.
    Nothing,
    /// The fence failed: another replica leads.
    Deposed,
}

pub(crate) struct Writes {
    writer: Writer,
    replica: Replica,
    ids: IdSource,
    delivery_limit: u8,
    metrics: Metrics,
    permits: Semaphore,
}

impl Writes {
    pub(crate) fn new(
        writer: Writer,
        replica: Replica,
        ids: IdSource,
        delivery_limit: u8,
        metrics: Metrics,
    ) -> Self {
        Self {
            writer,
            replica,
            ids,
            delivery_limit,
            metrics,
            permits: Semaphore::new(WRITES_IN_FLIGHT),
        }
    }

    pub(crate) async fn perform(&self, job: Job) -> Written {
        let _permit = self.permits.acquire().await.expect("never closed");
        match job {
            Job::Fail {
                eval_id,
                follow_up_after,
                now,
            } => self.fail(eval_id, follow_up_after, now).await,
            Job::Cancel { eval_ids, now } => self.cancel(&eval_ids, now).await,
        }
    }

    /// Fails an evaluation, with a follow-up unless its job is gone.
    async fn fail(&self, id: EvalId, after: Duration, now: Timestamp) -> Written {
        let snapshot = self.replica.snapshot();
        let follow_up_id = EvalId::from_random(self.ids.next_u128());
        let limit = self.delivery_limit;
        let writes = outcome::fail(&snapshot, id, limit, follow_up_id, after, now);
        let Some((writes, eval)) = writes.zip(snapshot.eval(id)) else {
            return Written::Nothing;
        };
        let span = info_span!("fail_evaluation", eval_id = %id, job_id = %eval.value.job.job_id);
        span.set_parent_from(&eval.value.trace_parent);
        let write = async {
            let performed = self.writer.perform(SizeClass::New, &writes, WRITE_TIMEOUT);
            self.written(performed.await, writes.len(), "evaluation failed")
        };
        let written = write.instrument(span).await;
        if written == Written::Done {
            self.metrics.failed.inc();
        }
        written
    }

    /// Cancels the evaluations that are still open, in as many transactions as necessary.
    async fn cancel(&self, ids: &[EvalId], now: Timestamp) -> Written {
        let snapshot = self.replica.snapshot();
        let packed = self.writer.pack(outcome::cancel_all(&snapshot, ids, now));
        for (write, error) in packed.refused {
            self.metrics.write_failures.inc();
            warn!(%error, key = ?write.key(), "cannot cancel an evaluation");
        }
        let mut written = Written::Nothing;
        for txn in &packed.txns {
            written = self.commit(txn, "evaluations canceled").await;
            if written == Written::Deposed {
                break;
            }
        }
        written
    }

    async fn commit(&self, txn: &Txn, what: &'static str) -> Written {
        let performed = self.writer.perform_txn(txn, WRITE_TIMEOUT);
        self.written(performed.await, txn.write_count(), what)
    }

    fn written(&self, outcome: CommitOutcome, evals: usize, what: &'static str) -> Written {
        match outcome.settled() {
            Ok(Settled::Done { revision }) => {
                info!(index = revision, evals, what);
                Written::Done
            }
            Ok(Settled::Deposed) => Written::Deposed,
            Ok(Settled::Conflict(conflict)) => {
                // A worker's outcome was faster: the change feed informs the broker.
                debug!(
                    index = conflict.revision,
                    what, "an evaluation has changed meanwhile"
                );
                Written::Nothing
            }
            Err(error) => {
                self.metrics.write_failures.inc();
                warn!(%error, what, "cannot write evaluations; retrying");
                Written::Nothing
            }
        }
    }
}
