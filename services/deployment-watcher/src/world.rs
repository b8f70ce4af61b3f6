//! Writes what was decided: one transaction an action, compared and fenced.

use std::time::Duration;

use model::{EvalId, Timestamp};
use rollout::{Action, outcome};
use service_kit::{Clock, IdSource, current_trace_parent};
use state::{Entity, Key};
use store::{Commit, Replica, Room, Txn, TxnError, Value, Writer};
use tracing::{info, instrument, warn};

use crate::metrics::{Metrics, ReasonLabel};

/// How long one write may be in doubt; the leadership may be lost within that.
const PATIENCE: Duration = Duration::from_secs(5);

/// Everything needed to carry out an action. Cheap to clone.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) writer: Writer,
    pub(crate) replica: Replica,
    pub(crate) clock: Clock,
    pub(crate) ids: IdSource,
    pub(crate) metrics: Metrics,
}

/// What became of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Performed {
    /// Written, or overtaken by somebody else's write: the state at this revision shows it.
    SeenAt(u64),
    /// Neither written nor overtaken: to be looked at again, a little later.
    Failed,
    /// Another leads.
    Deposed,
}

/// Why an action was not written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Txn(#[from] TxnError),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl WriteError {
    /// Tells whether less would have been written.
    fn is_of_size(&self) -> bool {
        matches!(
            self,
            Self::Txn(TxnError::TooManyBytes { .. } | TxnError::TooManyOps { .. })
                | Self::Store(store::Error::LimitsTooLow { .. })
        )
    }
}

impl World {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.clock.now())
    }

    pub(crate) fn eval_id(&self) -> EvalId {
        EvalId::from_random(self.ids.next_u128())
    }

    /// Carries out one action.
    #[instrument(skip_all, fields(deployment_id = %action.deployment_id, reason = action.reason.as_str()))]
    pub(crate) async fn perform(&self, action: Action) -> Performed {
        let written = match self.write(action.clone()).await {
            Err(error) if error.is_of_size() && action.job.is_some() => {
                warn!(%error, "failed without the revert, which is too large for a transaction");
                self.write(outcome::without_revert(action.clone())).await
            }
            written => written,
        };
        match written {
            Ok(Commit::Done { revision }) => {
                let label = ReasonLabel {
                    reason: action.reason.as_str(),
                };
                self.metrics.actions.get_or_create(&label).inc();
                info!(index = revision, "deployment moved");
                Performed::SeenAt(revision)
            }
            Ok(Commit::Conflict(conflict)) if conflict.is_fenced() => Performed::Deposed,
            Ok(Commit::Conflict(conflict)) => Performed::SeenAt(conflict.revision),
            Err(WriteError::Store(store::Error::Deposed { .. })) => Performed::Deposed,
            Err(error) => {
                warn!(%error, "cannot write, it will be tried again");
                self.metrics.write_failures.inc();
                Performed::Failed
            }
        }
    }

    async fn write(&self, action: Action) -> Result<Commit, WriteError> {
        let txn = self.build(action)?;
        Ok(self.writer.commit_surely(&txn, PATIENCE).await?)
    }

    fn build(&self, action: Action) -> Result<Txn, TxnError> {
        let mut txn = self.writer.txn_with(Room::FollowUp);
        if let Some(deployment) = &action.deployment {
            let key = Key::Deployment(deployment.value.id);
            txn.update(&key, deployment.modify_index, &deployment.value)?;
        }
        if let Some(job) = &action.job {
            let key = job.value.key();
            txn.update(&Key::Job(key.clone()), job.modify_index, &job.value)?;
            txn.create(&Key::JobVersion(key, job.value.version), &job.value)?;
        }
        if let Some(mut eval) = action.eval {
            eval.trace_parent = current_trace_parent();
            txn.create(&Key::Eval(eval.id), &eval)?;
        }
        if let Some(stable) = &action.stable {
            let (job, version) = &stable.value;
            let version_key = Key::JobVersion(job.clone(), *version);
            txn.require_unchanged(&version_key, stable.modify_index)?;
            let mark = Value::from(&Entity::JobStable);
            txn.create(&Key::JobStable(job.clone(), *version), mark)?;
        }
        // What users say of their allocations' health is written by whoever they say it to.
        debug_assert!(action.clients.is_empty(), "the watcher writes no health");
        for (key, modify_index) in &action.unchanged {
            txn.require_unchanged(key, *modify_index)?;
        }
        Ok(txn)
    }
}
