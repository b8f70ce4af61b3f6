//! Commits fenced transactions and determines their outcome.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use applier::{CommitId, Event, Piece, bad_nodes};
use model::{NodeId, Timestamp};
use service_kit::run::chain;
use state::{Snapshot, Write};
use store::{
    Commit, CommitOutcome, Decision, Replica, Settled, Transactor, Txn, TxnError, WaitError,
    Writer, decide_and_commit,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, instrument, warn};

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

    fn perform_txn(
        &self,
        txn: &Txn,
        timeout: Duration,
    ) -> impl Future<Output = CommitOutcome> + Send;
}

impl Store for Writer {
    fn txn(&self) -> Txn {
        Self::txn(self)
    }

    async fn perform_txn(&self, txn: &Txn, timeout: Duration) -> CommitOutcome {
        Self::perform_txn(self, txn, timeout).await
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
    /// Writes `pieces` in one transaction; returns the machine's event.
    #[instrument(skip_all, fields(commit = commit.0, plans = pieces.len()))]
    pub(crate) async fn commit(self, commit: CommitId, pieces: Vec<Arc<Piece>>) -> Event {
        let writes = pieces.iter().flat_map(|piece| &piece.ops);
        match self.write_all(writes).await {
            Written::Done(revision) => {
                #[expect(clippy::cast_precision_loss, reason = "a transaction has few plans")]
                self.metrics.commit_plans.observe(pieces.len() as f64);
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

    /// Writes all of `writes` in one transaction; returns the outcome.
    pub(crate) async fn write_all(&self, writes: impl IntoIterator<Item = &Write>) -> Written {
        match self.perform(writes).await {
            CommitOutcome::Done { revision } => {
                self.metrics.commit("committed");
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
            CommitOutcome::Refused(store::Error::Unbuildable(TxnError::Contradiction { key })) => {
                // Two plans saw an object, such as a node, at different revisions: the older one is stale.
                warn!(?key, "contradicting compares in one transaction");
                self.metrics.commit("conflict");
                Written::Conflict(self.replica.applied())
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

    async fn perform(&self, writes: impl IntoIterator<Item = &Write>) -> CommitOutcome {
        let txn = match self.writer.txn().with(writes) {
            Ok(txn) => txn,
            Err(failure) => return CommitOutcome::of(Err(failure.into())),
        };
        let began = Instant::now();
        let outcome = self.writer.perform_txn(&txn, COMMIT_TIMEOUT).await;
        self.metrics.apply.observe(began.elapsed().as_secs_f64());
        if let CommitOutcome::Done { revision } = outcome {
            debug!(index = revision, writes = txn.write_count(), "committed");
        }
        outcome
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
        let marking = Marking(&self);
        let marked = decide_and_commit(
            &marking,
            self.replica.snapshot(),
            MARK_ATTEMPTS_MAX,
            |snapshot| {
                let Some(mark) = bad_nodes::mark(snapshot, id, now) else {
                    return Ok(Decision::Known(None));
                };
                let txn = self.writer.txn().with([&mark]);
                Ok(Decision::Commit {
                    txns: vec![txn.map_err(|failure| MarkFailure::Store(failure.into()))?],
                    needs_fresh: false,
                    answer: Box::new(Some),
                })
            },
        );
        match marked.await {
            Ok(Some(Some(revision))) => {
                self.metrics.nodes_marked.inc();
                warn!(
                    index = revision,
                    "node marked as ineligible: too many of its parts of plans were rejected"
                );
            }
            Ok(Some(None) | None) | Err(MarkFailure::Deposed | MarkFailure::Replica(_)) => {}
            Err(MarkFailure::Store(failure)) => {
                let failure = chain(&failure);
                warn!(failure, "cannot mark a node as ineligible");
            }
        }
    }
}

/// The reason why a node is not marked.
#[derive(Debug, thiserror::Error)]
enum MarkFailure {
    #[error("another replica leads")]
    Deposed,
    #[error("the replica does not catch up")]
    Replica(#[source] WaitError),
    #[error(transparent)]
    Store(store::Error),
}

/// Reads and commits of marks, each within [`COMMIT_TIMEOUT`].
struct Marking<'a, S>(&'a Committer<S>);

impl<S: Store> Transactor for Marking<'_, S> {
    type Error = MarkFailure;

    async fn fresh(&self) -> Result<Snapshot, MarkFailure> {
        let fresh = self.0.replica.linearizable(COMMIT_TIMEOUT).await;
        fresh.map_err(MarkFailure::Replica)
    }

    async fn wait_for(&self, revision: u64) -> Result<Snapshot, MarkFailure> {
        let newer = self.0.replica.wait_for(revision, COMMIT_TIMEOUT).await;
        newer.map_err(MarkFailure::Replica)
    }

    async fn commit(&self, txn: &Txn) -> Result<Commit, MarkFailure> {
        let outcome = self.0.writer.perform_txn(txn, COMMIT_TIMEOUT).await;
        match outcome.settled().map_err(MarkFailure::Store)? {
            Settled::Done { revision } => Ok(Commit::Done { revision }),
            Settled::Conflict(conflict) => Ok(Commit::Conflict(conflict)),
            Settled::Deposed => Err(MarkFailure::Deposed),
        }
    }
}
