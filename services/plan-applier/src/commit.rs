//! Commits fenced transactions and determines their outcome.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use applier::{CommitId, Event, Piece, bad_nodes};
use model::{NodeId, Timestamp};
use service_kit::run::chain;
use store::{Commit, CommitOutcome, Replica, Txn, TxnError, Writer};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, instrument, warn};

use crate::metrics::Metrics;

/// Time for which the outcome of a transaction may be unknown. Usually the term is lost or the store
/// is back by then; after it, the leader gives up its term.
pub(crate) const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Attempts to mark a node in spite of conflicts.
const MARK_ATTEMPTS_MAX: usize = 4;

/// Outcome of a transaction.
#[derive(Debug)]
pub(crate) enum Written {
    /// Carried out at this revision.
    Done(u64),
    /// A compare failed, so nothing was written as of this revision.
    Conflict(u64),
    /// The store refused it with this reason: nothing was or will be written.
    Refused(String),
    /// As [`Self::Refused`], because of its size.
    TooLarge(String),
    /// The fence has failed, or the outcome is unknown: the next leader starts from the stored state.
    Deposed,
}

/// The writer of transactions: a leader's [`Writer`], or a test's substitute.
pub(crate) trait Store: Clone + Send + Sync + 'static {
    fn txn(&self) -> Txn;

    fn commit_surely(
        &self,
        txn: &Txn,
        timeout: Duration,
    ) -> impl Future<Output = Result<Commit, store::Error>> + Send;
}

impl Store for Writer {
    fn txn(&self) -> Txn {
        Self::txn(self)
    }

    async fn commit_surely(&self, txn: &Txn, timeout: Duration) -> Result<Commit, store::Error> {
        Self::commit_surely(self, txn, timeout).await
    }
}

/// The dependencies of a commit. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Committer<S = Writer> {
    pub(crate) writer: S,
    pub(crate) replica: Replica,
    pub(crate) metrics: Metrics,
    /// The process is about to end: retries stop.
    pub(crate) drain: CancellationToken,
}

impl<S: Store> Committer<S> {
    /// Writes `parts` in one transaction; returns the machine's event.
    #[instrument(skip_all, fields(commit = commit.0, plans = parts.len()))]
    pub(crate) async fn commit(self, commit: CommitId, parts: Vec<Arc<Piece>>) -> Event {
        let txn = match self.build(&parts) {
            Ok(txn) => txn,
            Err(TxnError::Contradiction { key }) => {
                // Two plans saw an object, such as a node, at different revisions: the older one is stale.
                warn!(?key, "plans with contradicting compares in one transaction");
                return self.conflict(commit, self.replica.applied());
            }
            Err(failure) => {
                error!(%failure, "cannot build a transaction");
                return self.refused(commit, &failure);
            }
        };
        match self.write(&txn).await {
            Written::Done(revision) => {
                #[expect(clippy::cast_precision_loss, reason = "a transaction has few plans")]
                self.metrics.commit_plans.observe(parts.len() as f64);
                Event::Committed { commit, revision }
            }
            Written::Conflict(revision) => Event::Conflict { commit, revision },
            Written::Refused(reason) | Written::TooLarge(reason) => Event::Refused {
                commit,
                revision: self.replica.applied(),
                reason,
            },
            Written::Deposed => Event::Deposed,
        }
    }

    /// Carries out one transaction; returns the outcome.
    pub(crate) async fn write(&self, txn: &Txn) -> Written {
        let began = Instant::now();
        let committed = self.writer.commit_surely(txn, COMMIT_TIMEOUT).await;
        self.metrics.apply.observe(began.elapsed().as_secs_f64());
        match CommitOutcome::of(committed) {
            CommitOutcome::Done { revision } => {
                self.metrics.commit("committed");
                info!(index = revision, writes = txn.write_count(), "committed");
                Written::Done(revision)
            }
            CommitOutcome::Deposed => {
                warn!("not the leader any more");
                Written::Deposed
            }
            CommitOutcome::Conflict(conflict) => {
                info!(index = conflict.revision, failed = ?conflict.failed, "conflict");
                self.metrics.commit("conflict");
                Written::Conflict(conflict.revision)
            }
            CommitOutcome::Unknown(failure) => {
                warn!(%failure, "the outcome of a transaction is unknown");
                self.metrics.commit("failed");
                Written::Deposed
            }
            CommitOutcome::TooLarge(failure) => Written::TooLarge(self.report_refusal(&failure)),
            CommitOutcome::Refused(failure) => Written::Refused(self.report_refusal(&failure)),
        }
    }

    /// Reports a refusal by the store; returns its reason.
    fn report_refusal(&self, failure: &store::Error) -> String {
        let reason = chain(failure);
        error!(failure = reason, "the store refused a transaction");
        self.metrics.commit("failed");
        reason
    }

    /// Makes a node with repeated rejections ineligible.
    ///
    /// Failures are ignored: further rejections lead to another attempt.
    pub(crate) async fn mark_ineligible(self, id: NodeId, now: Timestamp) {
        let mut snapshot = self.replica.snapshot();
        for _ in 0..MARK_ATTEMPTS_MAX {
            let Some(marking) = bad_nodes::mark(&snapshot, id, now) else {
                return;
            };
            let txn = match self.writer.txn().with([&marking]) {
                Ok(txn) => txn,
                Err(failure) => return error!(%failure, "cannot build a transaction"),
            };
            let committed = self.writer.commit_surely(&txn, COMMIT_TIMEOUT).await;
            match CommitOutcome::of(committed) {
                CommitOutcome::Done { revision } => {
                    self.metrics.nodes_marked.inc();
                    return warn!(
                        index = revision,
                        "node marked as ineligible: too many of its parts of plans were rejected"
                    );
                }
                CommitOutcome::Deposed => return,
                CommitOutcome::Conflict(conflict) => {
                    let waited = self
                        .replica
                        .wait_for(conflict.revision, COMMIT_TIMEOUT)
                        .await;
                    let Ok(newer) = waited else { return };
                    snapshot = newer;
                }
                CommitOutcome::TooLarge(failure)
                | CommitOutcome::Refused(failure)
                | CommitOutcome::Unknown(failure) => {
                    let failure = chain(&failure);
                    return warn!(failure, "cannot mark a node as ineligible");
                }
            }
        }
    }

    /// Returns the event of a refusal.
    fn refused(&self, commit: CommitId, failure: &(dyn std::error::Error + 'static)) -> Event {
        self.metrics.commit("failed");
        Event::Refused {
            commit,
            revision: self.replica.applied(),
            reason: chain(failure),
        }
    }

    fn conflict(&self, commit: CommitId, revision: u64) -> Event {
        self.metrics.commit("conflict");
        Event::Conflict { commit, revision }
    }

    fn build(&self, parts: &[Arc<Piece>]) -> Result<Txn, TxnError> {
        let ops = parts.iter().flat_map(|piece| &piece.ops);
        self.writer.txn().with(ops)
    }
}
