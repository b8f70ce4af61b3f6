//! Writes what was decided: one transaction an action, compared and fenced.

use std::time::Duration;

use model::{EvalId, Timestamp};
use rollout::Action;
use service_kit::{Clock, IdSource, current_trace_parent};
use state::{Entity, Key};
use store::{Commit, Replica, Txn, TxnError, Value, Writer};
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
        let txn = match self.build(action.clone()) {
            Ok(txn) => txn,
            Err(error) => {
                // A few writes of a few kilobytes: only a job near the bound of one request can.
                warn!(%error, "an action does not fit into a transaction");
                self.metrics.write_failures.inc();
                return Performed::Failed;
            }
        };
        match self.writer.commit_surely(&txn, PATIENCE).await {
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
            Err(store::Error::Deposed { .. }) => Performed::Deposed,
            Err(error) => {
                warn!(%error, "cannot write, it will be tried again");
                self.metrics.write_failures.inc();
                Performed::Failed
            }
        }
    }

    fn build(&self, action: Action) -> Result<Txn, TxnError> {
        let mut txn = self.writer.txn();
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
