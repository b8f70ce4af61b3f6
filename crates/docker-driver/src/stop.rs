//! Signals to a task, its stop, and the removal of its container.

use std::time::Duration;

use task_drivers::{DriverError, TaskId};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::debug;

use crate::container::{Found, State};
use crate::engine::Problem;
use crate::tasks::Docker;

/// Signal for images without a stop signal of their own. Source: the engine's default.
const STOP_SIGNAL: &str = "SIGTERM";
/// Timeout for a killed container to end.
const KILL_LIMIT: Duration = Duration::from_secs(15);
/// Pause between two looks at a container whose wait returned early.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

impl Docker {
    pub(crate) async fn stop_task(
        &self,
        id: &TaskId,
        signal: &str,
        grace: Duration,
    ) -> Result<(), DriverError> {
        let Some(found) = self.find_running(id).await? else {
            return Ok(());
        };
        let signal = match (signal, found.stop_signal.as_str()) {
            ("", "") => STOP_SIGNAL,
            ("", of_image) => of_image,
            (asked, _) => asked,
        };
        debug!(%id, signal, ?grace, "stopping a container");
        self.kill(id, &found, signal).await?;
        if self.ends_within(id, &found, grace).await? {
            return Ok(());
        }
        self.kill(id, &found, "SIGKILL").await?;
        if self.ends_within(id, &found, KILL_LIMIT).await? {
            return Ok(());
        }
        Err(DriverError::StillRuns {
            id: id.clone(),
            reason: format!("the engine did not end it within {KILL_LIMIT:?} of SIGKILL"),
        })
    }

    pub(crate) async fn signal_task(&self, id: &TaskId, signal: &str) -> Result<(), DriverError> {
        let refused = |reason: String| DriverError::Signal {
            id: id.clone(),
            reason,
        };
        let Some(found) = self.find_running(id).await? else {
            return Err(refused("it does not run".to_owned()));
        };
        let sent = self.engine.kill(&found.id, signal).await;
        sent.map_err(|problem| refused(problem.to_string()))
    }

    pub(crate) async fn forget_task(&self, id: &TaskId) -> Result<(), DriverError> {
        let found = self.find_attempt(id).await.map_err(engine(id))?;
        if let Some(found) = found {
            if found.state == State::Running {
                return Err(DriverError::StillRuns {
                    id: id.clone(),
                    reason: "its container has to be stopped first".to_owned(),
                });
            }
            let removed = self.engine.remove(&found.id, false).await;
            removed.map_err(engine(id))?;
        }
        self.records
            .remove(id)
            .map_err(|source| DriverError::Forget {
                id: id.clone(),
                source,
            })
    }

    pub(crate) async fn find_running(&self, id: &TaskId) -> Result<Option<Found>, DriverError> {
        let found = self.find_attempt(id).await.map_err(engine(id))?;
        Ok(found.filter(|found| found.state == State::Running))
    }

    /// Sends a signal; a container that has just ended is not an error.
    async fn kill(&self, id: &TaskId, found: &Found, signal: &str) -> Result<(), DriverError> {
        match self.engine.kill(&found.id, signal).await {
            Err(Problem::NotFound(_) | Problem::Refused { status: 409, .. }) | Ok(()) => Ok(()),
            Err(problem) => Err(engine(id)(problem)),
        }
    }

    async fn ends_within(
        &self,
        id: &TaskId,
        found: &Found,
        limit: Duration,
    ) -> Result<bool, DriverError> {
        let deadline = Instant::now() + limit;
        loop {
            let waited = timeout_at(deadline, self.engine.wait(&found.id)).await;
            if self.find_running(id).await?.is_none() {
                return Ok(true);
            }
            if waited.is_err() {
                return Ok(false);
            }
            sleep(LOOK_PAUSE).await;
        }
    }
}

/// Returns the conversion of an engine's problem to an error about a task.
pub(crate) fn engine(id: &TaskId) -> impl Fn(Problem) -> DriverError {
    move |problem| DriverError::Engine {
        id: id.clone(),
        reason: problem.to_string(),
    }
}
