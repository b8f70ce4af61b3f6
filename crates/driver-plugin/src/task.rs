//! A task and the process that has to know it.

use std::sync::Arc;
use std::time::Duration;

use prost_types::Duration as WireDuration;
use task_drivers::{DriverError, TaskId};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::instance::Instance;
use crate::plugin::Plugin;

/// Pause before another try with a process that is gone.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Reasons why a process does not know a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unattached {
    /// The process does not answer; another one will.
    Unknown(String),
    /// The plugin cannot take the task over; it is destroyed, as far as the plugin can.
    Lost(String),
}

/// Returns the plugin's id of an attempt: the same for every call, so that the outcome of a start can be
/// settled. Source: the form of Nomad's.
pub(crate) fn plugin_id(id: &TaskId) -> String {
    format!("{}/{}/{:08x}", id.alloc_id, id.task, id.attempt)
}

impl Plugin {
    /// Returns the process, for which it waits a while.
    pub(crate) async fn ready(&self) -> Result<Arc<Instance>, String> {
        let limit = self.settings.timing.ready_limit;
        timeout(limit, self.next_instance()).await.map_err(|_| {
            let seconds = limit.as_secs();
            let reason = self.fingerprint().description;
            format!(
                "the plugin {} does not run for {seconds} s: {reason}",
                self.program.file
            )
        })
    }

    /// Returns the process, for which it waits without end.
    pub(crate) async fn next_instance(&self) -> Arc<Instance> {
        let mut instances = self.instance.subscribe();
        let found = instances.wait_for(Option::is_some).await;
        let found = found.ok().and_then(|found| (*found).clone());
        match found {
            Some(instance) => instance,
            // The sender is in `self`.
            None => std::future::pending().await,
        }
    }

    /// Makes sure that the process knows a task, which an earlier process may have started.
    pub(crate) async fn attach(&self, instance: &Instance, id: &TaskId) -> Result<(), Unattached> {
        let mut known = instance.known.lock().await;
        if known.contains(id) {
            return Ok(());
        }
        let Some(record) = self.records.get(id) else {
            return Err(Unattached::Lost("there is no record of it".to_owned()));
        };
        let Some(handle) = self.records.handle(id) else {
            let reason = self.clear_unconfirmed(instance, id).await;
            return Err(reason
                .unwrap_or_else(|| Unattached::Lost("its start was not confirmed".to_owned())));
        };
        match instance.inspect(&record.task_id).await {
            Ok(_) => {}
            Err(error) if error.is_unknown() => return Err(Unattached::Unknown(error.to_string())),
            Err(_) => match instance.recover(&record.task_id, handle).await {
                Ok(()) => info!(%id, driver = self.name, "a task is recovered"),
                Err(error) if error.is_unknown() => {
                    return Err(Unattached::Unknown(error.to_string()));
                }
                Err(error) => {
                    let reason = format!("the plugin cannot recover it: {error}");
                    warn!(%id, driver = self.name, reason, "a task is lost");
                    // What is left of it must not run on.
                    let destroyed = instance.destroy(&record.task_id, true).await;
                    if let Err(error) = destroyed {
                        warn!(%id, %error, "the remains of a lost task cannot be removed");
                    }
                    return Err(Unattached::Lost(reason));
                }
            },
        }
        known.insert(id.clone());
        Ok(())
    }

    /// Destroys what an unconfirmed start may have left. Returns why it cannot.
    pub(crate) async fn clear_unconfirmed(
        &self,
        instance: &Instance,
        id: &TaskId,
    ) -> Option<Unattached> {
        match instance.destroy(&plugin_id(id), true).await {
            Ok(()) => None,
            Err(error) => Some(Unattached::Unknown(format!(
                "the outcome of its start is unknown: {error}"
            ))),
        }
    }

    pub(crate) fn error(&self, id: &TaskId, reason: impl ToString) -> DriverError {
        DriverError::Engine {
            id: id.clone(),
            reason: format!("plugin {}: {}", self.program.file, reason.to_string()),
        }
    }

    /// Returns the process, and its id of a task that it knows.
    pub(crate) async fn attached(
        &self,
        id: &TaskId,
    ) -> Result<(Arc<Instance>, String), DriverError> {
        let deadline = Instant::now() + self.settings.timing.ready_limit;
        loop {
            let instance = self.ready().await;
            let instance = instance.map_err(|reason| self.error(id, reason))?;
            match self.attach(&instance, id).await {
                Ok(()) => return Ok((instance, plugin_id(id))),
                Err(Unattached::Lost(_)) => {
                    return Err(DriverError::UnknownTask { id: id.clone() });
                }
                Err(Unattached::Unknown(reason)) if Instant::now() >= deadline => {
                    return Err(self.error(id, reason));
                }
                // The process may have just ended.
                Err(Unattached::Unknown(_)) => sleep(RETRY_PAUSE).await,
            }
        }
    }
}

pub(crate) fn wire_duration(duration: std::time::Duration) -> WireDuration {
    WireDuration::try_from(duration).unwrap_or(WireDuration {
        seconds: i64::MAX,
        nanos: 0,
    })
}
