//! Wait for a task's end, across processes of the plugin.

use std::time::Duration;

use model::ExitResult;
use task_drivers::{DriverError, Messages, TaskId, output_copy};
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::calls::{CallError, bounded, done};
use crate::instance::Instance;
use crate::plugin::Plugin;
use crate::task::{Unattached, plugin_id};
use crate::wire::drivers::{WaitTaskRequest, WaitTaskResponse};

/// Pause before the next question to a process that fails.
const PAUSE: Duration = Duration::from_millis(500);
/// Refusals of a wait in a row, after which the task counts as lost.
const REFUSALS_MAX: u32 = 5;
/// Time for the rest of the output of a task that has ended.
const OUTPUT_LIMIT: Duration = Duration::from_secs(5);

impl Plugin {
    /// Available until the task is forgotten. While the plugin does not answer, the task counts as running.
    pub(crate) async fn wait_task(
        &self,
        id: &TaskId,
        messages: &Messages,
    ) -> Result<ExitResult, DriverError> {
        if self.records.get(id).is_none() {
            return Err(DriverError::UnknownTask { id: id.clone() });
        }
        if let Some(exit) = self.records.exit(id) {
            return Ok(exit);
        }
        let task_id = plugin_id(id);
        self.set_messages(&task_id, Some(messages));
        let exit = tokio::select! {
            exit = self.exit(id, &task_id) => exit,
            never = self.follow_usage(id, &task_id) => match never {},
        };
        self.set_messages(&task_id, None);
        self.set_usage(id, None);
        if let Err(error) = self.records.put_exit(id, &exit) {
            warn!(%id, %error, "cannot write the end of a task");
        }
        let directory = self.records.directory(id);
        let copied = blocking::spawn(move || output_copy::finish(&directory, OUTPUT_LIMIT));
        if !copied.await.unwrap_or(true) {
            warn!(%id, "the last output of a task was not copied in time");
        }
        Ok(exit)
    }

    async fn exit(&self, id: &TaskId, task_id: &str) -> ExitResult {
        let mut refusals = 0;
        loop {
            let instance = self.next_instance().await;
            match self.attach(&instance, id).await {
                Ok(()) => {}
                Err(Unattached::Lost(reason)) => return lost(&reason),
                Err(Unattached::Unknown(reason)) => {
                    debug!(%id, reason, "cannot wait for a task");
                    sleep(PAUSE).await;
                    continue;
                }
            }
            match ended(&instance, task_id).await {
                Ok(answer) => return exit(answer),
                Err(error) if error.is_unknown() => {
                    debug!(%id, %error, "the wait for a task is interrupted");
                }
                Err(error) => {
                    // The process may have forgotten it: the next attachment recovers it.
                    instance.known.lock().await.remove(id);
                    refusals += 1;
                    if refusals >= REFUSALS_MAX {
                        let reason = format!("the plugin does not wait for it: {error}");
                        if let Err(error) = instance.destroy(task_id, true).await {
                            warn!(%id, %error, "the remains of a lost task cannot be removed");
                        }
                        return lost(&reason);
                    }
                }
            }
            sleep(PAUSE).await;
        }
    }
}

/// Waits without a deadline.
async fn ended(instance: &Instance, task_id: &str) -> Result<WaitTaskResponse, CallError> {
    let request = WaitTaskRequest {
        task_id: task_id.to_owned(),
    };
    let mut driver = instance.driver();
    tokio::select! {
        answer = driver.wait_task(request) => done(answer),
        () = instance.gone.cancelled() => Err(CallError::Gone("its process has ended".to_owned())),
    }
}

fn exit(answer: WaitTaskResponse) -> ExitResult {
    let result = answer.result.unwrap_or_default();
    let code = match (result.exit_code, result.signal) {
        // As a shell shows it.
        (0, signal) if signal > 0 => 128_i32.saturating_add(signal),
        (0, 0) if !answer.err.is_empty() => -1,
        (code, _) => code,
    };
    ExitResult {
        code,
        signal: result.signal,
        oom_killed: result.oom_killed,
        message: bounded(&answer.err),
    }
}

fn lost(reason: &str) -> ExitResult {
    ExitResult {
        code: -1,
        message: format!("the task is lost: {reason}"),
        ..ExitResult::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::drivers::ExitResult as WireExit;

    #[test]
    fn an_exit_is_a_code_a_signal_or_an_error() {
        let of = |exit_code, signal, err: &str| {
            let result = Some(WireExit {
                exit_code,
                signal,
                oom_killed: false,
            });
            let found = exit(WaitTaskResponse {
                result,
                err: err.to_owned(),
            });
            (found.code, found.signal, found.message)
        };
        assert_eq!(of(3, 0, ""), (3, 0, String::new()));
        assert_eq!(of(0, 9, ""), (137, 9, String::new()));
        assert_eq!(of(143, 15, ""), (143, 15, String::new()));
        assert_eq!(of(0, 0, "gone"), (-1, 0, "gone".to_owned()));
    }
}
