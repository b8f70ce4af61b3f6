//! One leadership term: the writer, and the other parts that the leader's loops share.

use std::time::Duration;

use controller::transition::evaluate;
use controller::{Config, Transition};
use model::{EvalId, NodeId, NodeStatus, Timestamp};
use service_kit::{IdSource, SteadyClock, current_trace_parent};
use state::set_trace_parent;
use state::{Entity, Write};
use store::{Replica, Settled, SizeClass, Writer};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::metrics::Metrics;

/// The time for which one write may be in doubt; the leadership may be lost within that.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The context that the loops of one term share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Term {
    pub(crate) writer: Writer,
    pub(crate) replica: Replica,
    /// Steady, so that a step of the wall clock does not make every node look silent.
    pub(crate) clock: SteadyClock,
    pub(crate) ids: IdSource,
    pub(crate) metrics: Metrics,
    pub(crate) config: Config,
    /// Cancelled when a write finds another leader.
    pub(crate) deposed: CancellationToken,
}

/// The reason why a write failed; the decision is made again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("cannot read the latest state")]
    Wait(#[from] store::WaitError),
    #[error("a compared object has changed")]
    Conflict,
    #[error("another replica leads")]
    Deposed,
}

impl Term {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.clock.now())
    }

    pub(crate) fn eval_id(&self) -> EvalId {
        EvalId::from_random(self.ids.next_u128())
    }

    /// Performs `writes` in one transaction, with the leader's fence and the current trace, and
    /// returns its revision.
    ///
    /// # Errors
    /// See [`WriteError`]. A deposed leader also ends the term.
    pub(crate) async fn write(
        &self,
        mut writes: Vec<Write>,
        class: SizeClass,
    ) -> Result<u64, WriteError> {
        set_trace_parent(&mut writes, &current_trace_parent());
        let outcome = self.writer.perform(class, &writes, WRITE_TIMEOUT).await;
        match outcome.settled()? {
            Settled::Done { revision } => Ok(revision),
            Settled::Deposed => {
                self.deposed.cancel();
                Err(WriteError::Deposed)
            }
            Settled::Conflict(_) => Err(WriteError::Conflict),
        }
    }

    /// Performs one transition; failures are logged, and the transition is requested again.
    pub(crate) async fn transition(&self, transition: Transition) {
        let snapshot = self.replica.snapshot();
        let mut next_id = || self.eval_id();
        let writes = transition.writes(&self.config, &snapshot, self.now(), &mut next_id);
        if writes.is_empty() {
            return;
        }
        match self.write_evals(writes).await {
            Ok(revision) => {
                match transition.to {
                    NodeStatus::Ready => self.metrics.node_ready.inc(),
                    _ => self.metrics.heartbeat_invalidate.inc(),
                };
                let (from, to) = (transition.from.as_str(), transition.to.as_str());
                info!(node_id = %transition.node_id, from, to, index = revision, "node changed");
            }
            Err(error) => self.log_failure(&error),
        }
    }

    /// Creates the missing evaluations of a node.
    pub(crate) async fn evaluate(&self, node_id: NodeId) {
        let snapshot = self.replica.snapshot();
        let txns = evaluate(&snapshot, node_id, self.now(), &mut || self.eval_id());
        let count = txns.iter().flatten().filter(|write| is_eval(write)).count();
        info!(%node_id, count, "creating the missing evaluations of a node");
        for writes in txns {
            if let Err(error) = self.write_evals(writes).await {
                self.log_failure(&error);
                return;
            }
        }
    }

    /// Performs one transaction, and counts the evaluations in it.
    async fn write_evals(&self, writes: Vec<Write>) -> Result<u64, WriteError> {
        let evals = writes.iter().filter(|write| is_eval(write)).count();
        let revision = self.write(writes, SizeClass::New).await?;
        self.metrics.evals_created.inc_by(evals as u64);
        Ok(revision)
    }

    fn log_failure(&self, error: &WriteError) {
        self.metrics.write_failures.inc();
        warn!(%error, "cannot write a change of a node; retrying");
    }
}

fn is_eval(write: &Write) -> bool {
    matches!(write.entity(), Some(Entity::Eval(_)))
}
