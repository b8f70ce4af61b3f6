//! Signals to a task, its stop, and the removal of its records.

use std::time::Duration;

use task_drivers::{DriverError, TaskId};
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::calls::{CallError, within};
use crate::plugin::Plugin;
use crate::task::{RETRY_PAUSE, plugin_id, wire_duration};
use crate::wire::drivers::{SignalTaskRequest, StopTaskRequest};

/// Stops that are asked of one process after another.
const STOP_TRIES: u32 = 3;

impl Plugin {
    pub(crate) async fn stop_task(
        &self,
        id: &TaskId,
        signal: &str,
        grace: Duration,
    ) -> Result<(), DriverError> {
        if self.records.get(id).is_none() || self.records.exit(id).is_some() {
            return Ok(());
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let (instance, task_id) = match self.attached(id).await {
                Ok(attached) => attached,
                // Lost, and destroyed.
                Err(DriverError::UnknownTask { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            debug!(%id, signal, ?grace, driver = self.name, "stopping a task");
            let request = StopTaskRequest {
                task_id: task_id.clone(),
                timeout: Some(wire_duration(grace)),
                signal: signal.to_owned(),
            };
            let mut driver = instance.driver();
            let limit = grace.saturating_add(instance.timing.work_limit);
            let stopped = within("StopTask", limit, driver.stop_task(request)).await;
            let error = match stopped {
                Ok(_) | Err(CallError::NoTask(_)) => return Ok(()),
                Err(CallError::Gone(_)) if tries < STOP_TRIES => {
                    sleep(RETRY_PAUSE).await;
                    continue;
                }
                Err(error) => error,
            };
            warn!(%id, %error, "a task does not stop: it is destroyed");
            let destroyed = instance.destroy(&task_id, true).await;
            return destroyed.map_err(|destroying| DriverError::StillRuns {
                id: id.clone(),
                reason: format!("{error}; its removal fails as well: {destroying}"),
            });
        }
    }

    pub(crate) async fn signal_task(&self, id: &TaskId, signal: &str) -> Result<(), DriverError> {
        let refused = |reason: String| DriverError::Signal {
            id: id.clone(),
            reason,
        };
        if !self.facts().takes_signals {
            return Err(refused(format!("driver {} sends none", self.name)));
        }
        let (instance, task_id) = self.attached(id).await?;
        let request = SignalTaskRequest {
            task_id,
            signal: signal.to_owned(),
        };
        let mut driver = instance.driver();
        let limit = instance.timing.quick_limit;
        let sent = within("SignalTask", limit, driver.signal_task(request)).await;
        sent.map_err(|error| refused(error.to_string()))?;
        Ok(())
    }

    pub(crate) async fn forget_task(&self, id: &TaskId) -> Result<(), DriverError> {
        if self.records.get(id).is_some() {
            let instance = self
                .ready()
                .await
                .map_err(|reason| self.error(id, reason))?;
            // A task whose end no agent has seen is removed by force: its stop came before.
            let force = self.records.exit(id).is_none();
            match instance.destroy(&plugin_id(id), force).await {
                Ok(()) => {}
                Err(error) if error.is_unknown() => return Err(self.error(id, error)),
                Err(error) => {
                    return Err(DriverError::StillRuns {
                        id: id.clone(),
                        reason: error.to_string(),
                    });
                }
            }
            instance.known.lock().await.remove(id);
        }
        let (records, of) = (self.records.clone(), id.clone());
        let removed = blocking::spawn(move || records.remove(&of)).await;
        let removed = removed.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        removed.map_err(|source| DriverError::Forget {
            id: id.clone(),
            source,
        })
    }
}
