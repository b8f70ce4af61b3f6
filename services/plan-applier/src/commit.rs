//! Writes a transaction, fenced, and finds out what became of it.

use std::sync::Arc;
use std::time::Duration;

use applier::{CommitId, Event, Op, Piece};
use model::{NodeEligibility, NodeId, Timestamp};
use service_kit::run::chain;
use state::Key;
use store::{Commit, Replica, Txn, TxnError, Writer};
use tokio::time::Instant;
use tracing::{error, info, instrument, warn};

use crate::metrics::Metrics;

/// How long a transaction may be in doubt. Within it the term is lost or the store is back; beyond
/// it, giving up the term is the way to know.
const COMMIT_PATIENCE: Duration = Duration::from_secs(10);

/// How often a node that somebody else is changing is tried to be marked.
const MARK_ATTEMPTS_MAX: usize = 4;

/// Everything needed to commit. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Committer {
    pub(crate) writer: Writer,
    pub(crate) replica: Replica,
    pub(crate) metrics: Metrics,
}

impl Committer {
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
        let began = Instant::now();
        let committed = self.writer.commit_surely(&txn, COMMIT_PATIENCE).await;
        self.metrics.apply.observe(began.elapsed().as_secs_f64());
        match committed {
            Ok(Commit::Done { revision }) => {
                self.metrics.commit("committed");
                #[expect(clippy::cast_precision_loss, reason = "a transaction has few plans")]
                self.metrics.commit_plans.observe(parts.len() as f64);
                info!(index = revision, writes = txn.write_count(), "committed");
                Event::Committed { commit, revision }
            }
            Ok(Commit::Conflict(conflict)) if conflict.is_fenced() => {
                warn!("the fence failed: another leads");
                Event::Deposed
            }
            Ok(Commit::Conflict(conflict)) => {
                info!(index = conflict.revision, failed = ?conflict.failed, "overtaken");
                self.conflict(commit, conflict.revision)
            }
            Err(failure) if failure.is_unknown() || failure.is_retriable() => {
                warn!(%failure, "it is not known what became of a transaction");
                self.metrics.commit("failed");
                Event::Deposed
            }
            Err(store::Error::Deposed { .. }) => Event::Deposed,
            Err(failure) => {
                error!(failure = chain(&failure), "the store refused a transaction");
                self.refused(commit, &failure)
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
        for op in parts.iter().flat_map(|piece| &piece.ops) {
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
        Ok(txn)
    }
}
