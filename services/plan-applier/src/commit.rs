//! Writes a transaction, fenced, and finds out what became of it.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use applier::{CommitId, Event, Op, Piece};
use model::{NodeEligibility, NodeId, Timestamp};
use service_kit::run::chain;
use state::Key;
use store::{Commit, Replica, Txn, TxnError, Writer};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, instrument, warn};

use crate::metrics::Metrics;

/// How long a transaction may be in doubt. Within it the term is lost or the store is back; beyond
/// it, giving up the term is the way to know.
pub(crate) const COMMIT_PATIENCE: Duration = Duration::from_secs(10);

/// How often a node that somebody else is changing is tried to be marked.
const MARK_ATTEMPTS_MAX: usize = 4;

/// What became of a transaction.
#[derive(Debug)]
pub(crate) enum Written {
    /// Carried out, by this revision.
    Done(u64),
    /// A compare failed, so nothing of it was written as of this revision.
    Overtaken(u64),
    /// The store would not take it, and says why: nothing of it was or will be written.
    Refused(String),
    /// As [`Self::Refused`], because there is too much in it.
    TooLarge(String),
    /// The fence has failed, or nobody knows: whoever leads next starts from what is there.
    Deposed,
}

/// The way into the store: a leader's [`Writer`], or what a test has in its place.
pub(crate) trait Store: Clone + Send + Sync + 'static {
    fn txn(&self) -> Txn;

    fn commit_surely(
        &self,
        txn: &Txn,
        patience: Duration,
    ) -> impl Future<Output = Result<Commit, store::Error>> + Send;
}

impl Store for Writer {
    fn txn(&self) -> Txn {
        Self::txn(self)
    }

    async fn commit_surely(&self, txn: &Txn, patience: Duration) -> Result<Commit, store::Error> {
        Self::commit_surely(self, txn, patience).await
    }
}

/// Everything needed to commit. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Committer<S = Writer> {
    pub(crate) writer: S,
    pub(crate) replica: Replica,
    pub(crate) metrics: Metrics,
    /// The process is about to end: nothing is waited for any more.
    pub(crate) drain: CancellationToken,
}

impl<S: Store> Committer<S> {
    /// Writes `parts` in one transaction; says what the machine is to be told.
    #[instrument(skip_all, fields(commit = commit.0, plans = parts.len()))]
    pub(crate) async fn commit(self, commit: CommitId, parts: Vec<Arc<Piece>>) -> Event {
        let txn = match self.build(&parts) {
            Ok(txn) => txn,
            Err(TxnError::Contradiction { key }) => {
                // Two plans saw a node (say) at different revisions: the older view is void.
                warn!(?key, "plans that do not go together");
                return self.conflict(commit, self.replica.applied());
            }
            Err(failure) => {
                error!(%failure, "a transaction cannot be built");
                return self.refused(commit, &failure);
            }
        };
        match self.write(&txn).await {
            Written::Done(revision) => {
                #[expect(clippy::cast_precision_loss, reason = "a transaction has few plans")]
                self.metrics.commit_plans.observe(parts.len() as f64);
                Event::Committed { commit, revision }
            }
            Written::Overtaken(revision) => Event::Conflict { commit, revision },
            Written::Refused(reason) | Written::TooLarge(reason) => Event::Refused {
                commit,
                revision: self.replica.applied(),
                reason,
            },
            Written::Deposed => Event::Deposed,
        }
    }

    /// Carries out one transaction; says what became of it.
    pub(crate) async fn write(&self, txn: &Txn) -> Written {
        let began = Instant::now();
        let committed = self.writer.commit_surely(txn, COMMIT_PATIENCE).await;
        self.metrics.apply.observe(began.elapsed().as_secs_f64());
        match committed {
            Ok(Commit::Done { revision }) => {
                self.metrics.commit("committed");
                info!(index = revision, writes = txn.write_count(), "committed");
                Written::Done(revision)
            }
            Ok(Commit::Conflict(conflict)) if conflict.is_fenced() => {
                warn!("the fence failed: another leads");
                Written::Deposed
            }
            Ok(Commit::Conflict(conflict)) => {
                info!(index = conflict.revision, failed = ?conflict.failed, "overtaken");
                self.metrics.commit("conflict");
                Written::Overtaken(conflict.revision)
            }
            Err(failure) if failure.is_unknown() || failure.is_retriable() => {
                warn!(%failure, "it is not known what became of a transaction");
                self.metrics.commit("failed");
                Written::Deposed
            }
            Err(store::Error::Deposed { .. }) => Written::Deposed,
            Err(failure) => {
                let reason = chain(&failure);
                error!(failure = reason, "the store refused a transaction");
                self.metrics.commit("failed");
                match failure {
                    store::Error::LimitsTooLow { .. } => Written::TooLarge(reason),
                    _ => Written::Refused(reason),
                }
            }
        }
    }

    /// Keeps further work away from a node whose parts of plans are rejected over and over.
    ///
    /// What cannot be written is left: the node is told of again if it goes on.
    pub(crate) async fn mark_ineligible(self, id: NodeId, now: Timestamp) {
        let mut snapshot = self.replica.snapshot();
        for _ in 0..MARK_ATTEMPTS_MAX {
            let stored = snapshot.node(id).filter(|node| node.value.is_schedulable());
            let Some(stored) = stored else {
                return;
            };
            let mut node = stored.value.clone();
            node.eligibility = NodeEligibility::Ineligible;
            node.note(
                now,
                "Scheduler",
                "Node marked as ineligible: too many plans rejected",
            );
            let mut txn = self.writer.txn();
            if let Err(failure) = txn.update(&Key::Node(id), stored.modify_index, &node) {
                return error!(%failure, "a transaction cannot be built");
            }
            match self.writer.commit_surely(&txn, COMMIT_PATIENCE).await {
                Ok(Commit::Done { revision }) => {
                    self.metrics.nodes_marked.inc();
                    return warn!(
                        index = revision,
                        "node marked as ineligible: its parts of too many plans were rejected"
                    );
                }
                Ok(Commit::Conflict(conflict)) if conflict.is_fenced() => return,
                Ok(Commit::Conflict(conflict)) => {
                    let waited = self
                        .replica
                        .wait_for(conflict.revision, COMMIT_PATIENCE)
                        .await;
                    let Ok(newer) = waited else { return };
                    snapshot = newer;
                }
                Err(failure) => {
                    let failure = chain(&failure);
                    return warn!(failure, "a node could not be marked as ineligible");
                }
            }
        }
    }

    /// Nothing was written, and nothing will be.
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
        let mut txn = self.writer.txn();
        add(&mut txn, parts.iter().flat_map(|piece| &piece.ops))?;
        Ok(txn)
    }
}

/// Adds what a plan wants written and compared.
pub(crate) fn add<'a>(txn: &mut Txn, ops: impl Iterator<Item = &'a Op>) -> Result<(), TxnError> {
    for op in ops {
        match op {
            Op::Create { key, entity } => txn.create(key, entity)?,
            Op::Update {
                key,
                entity,
                modify_index,
            } => txn.update(key, *modify_index, entity)?,
            Op::Check {
                key,
                modify_index: 0,
            } => txn.require_absent(key)?,
            Op::Check { key, modify_index } => txn.require_unchanged(key, *modify_index)?,
        };
    }
    Ok(())
}
