//! Writes what was decided: a node's status and the evaluations it needs, in one transaction.

use std::time::Duration;

use model::{EvalId, Evaluation, NodeId, NodeStatus, Timestamp};
use service_kit::{IdSource, SteadyClock, current_trace_parent};
use state::{Key, Snapshot};
use store::{Commit, Replica, TxnError, Writer};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use upkeep::evals::is_news;
use upkeep::outcome::moved;
use upkeep::{NodeEvals, Transition};

use crate::metrics::Metrics;

/// Evaluations that ride in one transaction with a node's status: below the bound of 1,000
/// operations with room for the rest. Those beyond follow in transactions of their own; what a
/// crash leaves out in between, the next leader makes.
const EVALS_PER_TXN: usize = 900;

/// How long one write may be in doubt; the leadership may be lost within that.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Everything needed to carry out a transition. Cheap to clone.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) writer: Writer,
    pub(crate) replica: Replica,
    /// A step of the wall clock must not make every node look silent.
    pub(crate) clock: SteadyClock,
    pub(crate) ids: IdSource,
    pub(crate) metrics: Metrics,
    pub(crate) config: upkeep::Config,
    /// Cancelled when a write finds that another leads.
    pub(crate) deposed: CancellationToken,
}

/// Why something was not written; the machine asks for it again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorldError {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Txn(#[from] TxnError),
    #[error("cannot get fresh state")]
    Wait(#[from] store::WaitError),
    #[error("another write was faster")]
    Overtaken,
    #[error("deposed")]
    Deposed,
}

impl World {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.clock.now())
    }

    /// Carries out one transition; failures are logged, for the machine asks again.
    pub(crate) async fn transition(&self, transition: Transition) {
        match self.try_transition(&transition).await {
            Ok(0) => {}
            Ok(revision) => {
                match transition.to {
                    NodeStatus::Ready => self.metrics.node_ready.inc(),
                    _ => self.metrics.heartbeat_invalidate.inc(),
                };
                let (from, to) = (transition.from.as_str(), transition.to.as_str());
                info!(node_id = %transition.node_id, from, to, index = revision, "node changed");
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Makes the evaluations that a former leader owed for a node that is down.
    pub(crate) async fn evaluate(&self, node_id: NodeId) {
        let snapshot = self.replica.snapshot();
        let evals = self.evals(&snapshot, node_id);
        info!(%node_id, count = evals.len(), "evaluations that a former leader owed");
        if let Err(error) = self.create_evals(&evals).await {
            self.failed(&error);
        }
    }

    /// Notes what a failed write says about this term.
    pub(crate) fn note_failure(&self, error: &WorldError) {
        if let WorldError::Deposed | WorldError::Store(store::Error::Deposed { .. }) = error {
            self.deposed.cancel();
        }
        self.metrics.write_failures.inc();
    }

    fn failed(&self, error: &WorldError) {
        self.note_failure(error);
        warn!(%error, "a node's change could not be written, it will be tried again");
    }

    /// Returns the revision of the write; 0 when the node has changed since it was decided, which
    /// the machine sees too and decides anew.
    async fn try_transition(&self, transition: &Transition) -> Result<u64, WorldError> {
        let snapshot = self.replica.snapshot();
        let Some(stored) = snapshot.node(transition.node_id) else {
            return Ok(0);
        };
        if stored.modify_index != transition.modify_index {
            return Ok(0);
        }
        let node = moved(&self.config, stored, transition.to, self.now());
        let evals = if is_news(transition.from, transition.to) {
            self.evals(&snapshot, transition.node_id)
        } else {
            Vec::new()
        };
        let (first, rest) = evals.split_at(evals.len().min(EVALS_PER_TXN));
        let mut txn = self.writer.txn();
        txn.update(
            &Key::Node(transition.node_id),
            node.modify_index,
            &node.value,
        )?;
        for eval in first {
            txn.create(&Key::Eval(eval.id), eval)?;
        }
        match self.writer.commit_surely(&txn, PATIENCE).await? {
            Commit::Done { revision } => {
                self.metrics.evals_created.inc_by(first.len() as u64);
                self.create_evals(rest).await?;
                Ok(revision)
            }
            Commit::Conflict(conflict) if conflict.is_fenced() => Err(WorldError::Deposed),
            Commit::Conflict(_) => Err(WorldError::Overtaken),
        }
    }

    fn evals(&self, snapshot: &Snapshot, node_id: NodeId) -> Vec<Evaluation> {
        let Some(node) = snapshot.node(node_id) else {
            return Vec::new();
        };
        let mut next_id = || EvalId::from_random(self.ids.next_u128());
        let mut evals = NodeEvals::new(snapshot).of_node(&node.value, self.now(), &mut next_id);
        for eval in &mut evals {
            eval.trace_parent = current_trace_parent();
        }
        evals
    }

    async fn create_evals(&self, evals: &[Evaluation]) -> Result<(), WorldError> {
        for batch in evals.chunks(EVALS_PER_TXN) {
            let mut txn = self.writer.txn();
            for eval in batch {
                txn.create(&Key::Eval(eval.id), eval)?;
            }
            match self.writer.commit_surely(&txn, PATIENCE).await? {
                Commit::Done { .. } => self.metrics.evals_created.inc_by(batch.len() as u64),
                // Their ids are new, so only the fence can have failed.
                Commit::Conflict(_) => return Err(WorldError::Deposed),
            };
        }
        Ok(())
    }
}
