//! The transactions of the broker: evaluations that failed, and those made needless.

use std::time::Duration;

use broker::outcome;
use model::{EvalId, Evaluation, Indexed, Timestamp};
use service_kit::{IdSource, SpanParent as _};
use state::{Key, Snapshot};
use store::{Commit, Replica, Txn, TxnError, Writer};
use tokio::sync::Semaphore;
use tracing::{Instrument as _, debug, info, info_span, warn};

use crate::metrics::Metrics;

/// Writes at the same time: cancelling is background work and must leave the store to plans.
const WRITES_IN_FLIGHT: usize = 4;

/// How long one write may be in doubt. The broker asks again after twice that.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is to be written.
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

/// How a write ended, as far as the loop cares: what was not written is asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// Not written: overtaken, or to be asked for again.
    Nothing,
    /// The fence failed: another leads.
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

    /// Writes an evaluation failed, with a follow-up unless its job is gone.
    async fn fail(&self, id: EvalId, after: Duration, now: Timestamp) -> Written {
        let snapshot = self.replica.snapshot();
        let Some(eval) = open(&snapshot, id) else {
            return Written::Nothing;
        };
        let span = info_span!("fail_evaluation", eval_id = %id, job_id = %eval.value.job.job_id);
        span.set_parent_from(&eval.value.trace_parent);
        let follow_up = snapshot.job(&eval.value.job).map(|_| {
            let id = EvalId::from_random(self.ids.next_u128());
            outcome::follow_up(&eval.value, id, now, after)
        });
        let next = follow_up.as_ref().map(|next| next.id);
        let failed = outcome::failed(&eval.value, self.delivery_limit, next, now);
        let build = || -> Result<Txn, TxnError> {
            let mut txn = self.writer.txn();
            txn.update(&Key::Eval(id), eval.modify_index, &failed)?;
            if let Some(next) = &follow_up {
                txn.create(&Key::Eval(next.id), next)?;
            }
            Ok(txn)
        };
        let write = async {
            match build() {
                Ok(txn) => self.commit(&txn, "evaluation failed").await,
                Err(error) => {
                    self.metrics.write_failures.inc();
                    warn!(%error, "an evaluation is too large to be written failed");
                    Written::Nothing
                }
            }
        };
        let written = write.instrument(span).await;
        if written == Written::Done {
            self.metrics.failed.inc();
        }
        written
    }

    /// Writes evaluations canceled: those that are still open, in as many transactions as it takes.
    async fn cancel(&self, ids: &[EvalId], now: Timestamp) -> Written {
        let snapshot = self.replica.snapshot();
        let mut txn = self.writer.txn();
        for eval in ids.iter().filter_map(|id| open(&snapshot, *id)) {
            let placed_all = outcome::placed_all_since(&snapshot, eval);
            let canceled = outcome::canceled(&eval.value, placed_all, now);
            match add(&mut txn, eval, &canceled) {
                Ok(()) => continue,
                Err(TxnError::TooManyBytes { .. } | TxnError::TooManyOps { .. })
                    if !txn.is_empty() => {}
                Err(error) => {
                    self.metrics.write_failures.inc();
                    warn!(%error, eval_id = %eval.value.id, "cannot cancel an evaluation");
                    continue;
                }
            }
            let full = std::mem::replace(&mut txn, self.writer.txn());
            if self.commit(&full, "evaluations canceled").await == Written::Deposed {
                return Written::Deposed;
            }
            if let Err(error) = add(&mut txn, eval, &canceled) {
                self.metrics.write_failures.inc();
                warn!(%error, eval_id = %eval.value.id, "cannot cancel an evaluation");
            }
        }
        if txn.is_empty() {
            return Written::Nothing;
        }
        self.commit(&txn, "evaluations canceled").await
    }

    async fn commit(&self, txn: &Txn, what: &'static str) -> Written {
        match self.writer.commit_surely(txn, PATIENCE).await {
            Ok(Commit::Done { revision }) => {
                info!(index = revision, evals = txn.write_count(), what);
                Written::Done
            }
            Ok(Commit::Conflict(conflict)) if conflict.is_fenced() => Written::Deposed,
            Ok(Commit::Conflict(conflict)) => {
                // An outcome was faster: the change feed tells the broker.
                debug!(index = conflict.revision, what, "overtaken");
                Written::Nothing
            }
            Err(store::Error::Deposed { .. }) => Written::Deposed,
            Err(error) => {
                self.metrics.write_failures.inc();
                warn!(%error, what, "cannot write, it will be tried again");
                Written::Nothing
            }
        }
    }
}

/// Returns an evaluation if there is still something to decide about it.
fn open(snapshot: &Snapshot, id: EvalId) -> Option<&Indexed<Evaluation>> {
    let eval = snapshot.eval(id)?;
    (!eval.value.status.is_terminal()).then_some(&**eval)
}

fn add(txn: &mut Txn, read: &Indexed<Evaluation>, value: &Evaluation) -> Result<(), TxnError> {
    txn.update(&Key::Eval(value.id), read.modify_index, value)?;
    Ok(())
}
