//! The performer of actions: one transaction each, compared and fenced.

use std::time::Duration;

use model::{EvalId, Timestamp};
use rollout::{Action, outcome};
use service_kit::run::chain;
use service_kit::{Clock, IdSource, current_trace_parent};
use state::set_trace_parent;
use store::{CommitOutcome, Replica, Settled, SizeClass, Writer};
use tracing::{info, instrument, warn};

use crate::metrics::{Metrics, ReasonLabel};

/// The time for which one write may be in doubt; the leadership may be lost within that.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Performs actions for one leadership term. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Performer {
    pub(crate) writer: Writer,
    pub(crate) replica: Replica,
    pub(crate) clock: Clock,
    pub(crate) ids: IdSource,
    pub(crate) metrics: Metrics,
}

/// The result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Performed {
    /// Written, or another write was faster: the state at this revision shows it.
    SeenAt(u64),
    /// The write failed: retry after a backoff.
    Failed,
    /// Another replica leads.
    Deposed,
}

impl Performer {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.clock.now())
    }

    pub(crate) fn eval_id(&self) -> EvalId {
        EvalId::from_random(self.ids.next_u128())
    }

    /// Performs one action.
    #[instrument(skip_all, fields(deployment_id = %action.deployment_id, reason = action.reason.as_str()))]
    pub(crate) async fn perform(&self, mut action: Action) -> Performed {
        set_trace_parent(&mut action.writes, &current_trace_parent());
        let mut written = self.write(&action).await;
        if let CommitOutcome::TooLarge(error) = &written
            && let Some(smaller) = outcome::without_revert(action.clone())
        {
            let error = chain(error);
            warn!(
                error,
                "deployment fails without the revert, which is too large for a transaction"
            );
            written = self.write(&smaller).await;
        }
        match written.settled() {
            Ok(Settled::Done { revision }) => {
                let label = ReasonLabel {
                    reason: action.reason.as_str(),
                };
                self.metrics.actions.get_or_create(&label).inc();
                info!(index = revision, "deployment updated");
                Performed::SeenAt(revision)
            }
            Ok(Settled::Deposed) => Performed::Deposed,
            Ok(Settled::Conflict(conflict)) => Performed::SeenAt(conflict.revision),
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&self, error: &(dyn std::error::Error + 'static)) -> Performed {
        warn!(error = %chain(error), "cannot write a deployment; retrying");
        self.metrics.write_failures.inc();
        Performed::Failed
    }

    async fn write(&self, action: &Action) -> CommitOutcome {
        let class = SizeClass::FollowUp;
        let performed = self.writer.perform(class, &action.writes, WRITE_TIMEOUT);
        performed.await
    }
}
