//! The driver `mock_driver`: tasks simulated in the agent's memory after a script in their
//! configuration, for tests, demonstrations and simulated nodes.
//!
//! An instance is a few hundred bytes and one timer. Nothing survives the agent. Because a run
//! depends only on its start time, [`Driver::recover`] reconstructs it from the wall clock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{ExitResult, Timestamp};
use nix::sys::signal::Signal;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::config;
use crate::dirs::TaskDirs;
use crate::driver::{
    BoxFuture, Driver, DriverError, Fingerprint, Messages, MountSupport, NetworkSupport, Recovery,
    StartError, TaskConfig, TaskId,
};
use crate::log_files::{LogStream, RotatingLog};
use crate::signals;

pub(crate) const NAME: &str = "mock_driver";

/// Rotation of a task's log files: the defaults of the `logs` block. The block itself has no effect here.
const LOG_FILES_MAX: u32 = 10;
const LOG_FILE_BYTES_MAX: u64 = 10 << 20;

/// Options of a task's `config` block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    /// Duration of a run; zero: it ends at once.
    #[serde(deserialize_with = "config::duration")]
    run_for: Duration,
    exit_code: i32,
    exit_signal: i32,
    exit_err_msg: String,
    /// Number of attempts that end with the code, signal and message above; later ones succeed. 0:
    /// all attempts.
    fail_attempts: u32,
    /// Not empty: the start fails with this text.
    start_error: String,
    start_error_recoverable: bool,
    #[serde(deserialize_with = "config::duration")]
    start_block_for: Duration,
    /// Time between the kill signal and the end.
    #[serde(deserialize_with = "config::duration")]
    kill_after: Duration,
    /// Ignores the kill signal; ends with SIGKILL only.
    ignore_kill: bool,
    /// Not empty: signals fail with this error.
    signal_error: String,
    stdout_string: String,
    stdout_repeat: u32,
    #[serde(deserialize_with = "config::duration")]
    stdout_repeat_duration: Duration,
    stderr_string: String,
    stderr_repeat: u32,
    #[serde(deserialize_with = "config::duration")]
    stderr_repeat_duration: Duration,
}

/// One run of a task.
#[derive(Debug)]
struct Instance {
    options: Options,
    attempt: u32,
    /// Time of its natural end.
    ends_at: Instant,
    /// Time and result of a requested end; the first request wins.
    stopped: watch::Sender<Option<(Instant, ExitResult)>>,
}

impl Instance {
    fn new(options: Options, attempt: u32, ran_for: Duration) -> Self {
        let ends_at = Instant::now() + options.run_for.saturating_sub(ran_for);
        Self {
            options,
            attempt,
            ends_at,
            stopped: watch::Sender::new(None),
        }
    }

    /// Returns the result of its natural end.
    fn natural_exit(&self) -> ExitResult {
        let options = &self.options;
        if options.fail_attempts > 0 && self.attempt > options.fail_attempts {
            return ExitResult::default();
        }
        ExitResult {
            code: options.exit_code,
            signal: options.exit_signal,
            oom_killed: false,
            message: options.exit_err_msg.clone(),
        }
    }

    async fn exit(&self) -> ExitResult {
        let mut stopped = self.stopped.subscribe();
        loop {
            let end = stopped.borrow_and_update().clone();
            let (at, exit) = match end {
                Some((at, exit)) if at < self.ends_at => (at, exit),
                _ => (self.ends_at, self.natural_exit()),
            };
            if at <= Instant::now() {
                return exit;
            }
            tokio::select! {
                () = sleep_until(at) => return exit,
                // `self` owns the sender, so it cannot be gone.
                _ = stopped.changed() => {}
            }
        }
    }

    fn stop(&self, signal: &str, grace: Duration) {
        let now = Instant::now();
        let (at, signal) = if self.options.ignore_kill || self.options.kill_after > grace {
            (now + grace, Signal::SIGKILL)
        } else {
            (now + self.options.kill_after, signals::or_interrupt(signal))
        };
        let number = signal as i32;
        let exit = ExitResult {
            code: 128 + number,
            signal: number,
            ..ExitResult::default()
        };
        self.stopped.send_if_modified(|stopped| {
            let is_first = stopped.is_none();
            stopped.get_or_insert((at, exit));
            is_first
        });
    }
}

/// Simulates tasks.
#[derive(Debug, Default)]
pub struct MockDriver {
    instances: Mutex<HashMap<TaskId, Arc<Instance>>>,
}

impl MockDriver {
    fn instances(&self) -> MutexGuard<'_, HashMap<TaskId, Arc<Instance>>> {
        self.instances
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn instance(&self, id: &TaskId) -> Result<Arc<Instance>, DriverError> {
        let found = self.instances().get(id).cloned();
        found.ok_or_else(|| DriverError::UnknownTask { id: id.clone() })
    }

    async fn start_task(&self, config: TaskConfig) -> Result<(), StartError> {
        let options: Options = config::decode(NAME, config.config)?;
        if !options.start_block_for.is_zero() {
            tokio::select! {
                () = sleep(options.start_block_for) => {}
                () = config.cancel.cancelled() => {
                    let message = "the start was cancelled".to_owned();
                    return Err(StartError::Failed { message, recoverable: false });
                }
            }
        }
        if !options.start_error.is_empty() {
            return Err(StartError::Failed {
                message: options.start_error,
                recoverable: options.start_error_recoverable,
            });
        }
        let instance = Arc::new(Instance::new(options, config.id.attempt, Duration::ZERO));
        if let Some(dirs) = &config.dirs {
            write_output(&instance, dirs, &config.id.task);
        }
        self.instances().insert(config.id, instance);
        Ok(())
    }

    fn recover_task(&self, config: TaskConfig, started_at: Timestamp, now: Timestamp) -> Recovery {
        let options: Options = match config::decode(NAME, config.config) {
            Ok(options) => options,
            Err(error) => {
                return Recovery::NotFound {
                    reason: error.to_string(),
                };
            }
        };
        if started_at.is_never() {
            return Recovery::NotFound {
                reason: "it was never started".to_owned(),
            };
        }
        let ran_for = now.since(started_at);
        let is_over = ran_for >= options.run_for;
        let instance = Arc::new(Instance::new(options, config.id.attempt, ran_for));
        let exit = instance.natural_exit();
        self.instances().insert(config.id, instance);
        if is_over {
            Recovery::Exited(exit)
        } else {
            Recovery::Running { note: None }
        }
    }
}

/// Writes the task's output, now and repeatedly until it ends.
fn write_output(instance: &Arc<Instance>, dirs: &TaskDirs, task: &str) {
    let options = &instance.options;
    let log =
        |stream| RotatingLog::new(&dirs.logs, task, stream, LOG_FILES_MAX, LOG_FILE_BYTES_MAX);
    print(
        instance,
        log(LogStream::Stdout),
        options.stdout_string.clone(),
        options.stdout_repeat,
        options.stdout_repeat_duration,
    );
    print(
        instance,
        log(LogStream::Stderr),
        options.stderr_string.clone(),
        options.stderr_repeat,
        options.stderr_repeat_duration,
    );
}

fn print(
    instance: &Arc<Instance>,
    mut log: RotatingLog,
    text: String,
    repeat: u32,
    interval: Duration,
) {
    if text.is_empty() {
        return;
    }
    log.write(text.as_bytes());
    if repeat == 0 {
        return;
    }
    let instance = Arc::clone(instance);
    tokio::spawn(async move {
        let repeated = async {
            for _ in 0..repeat {
                sleep(interval).await;
                log.write(text.as_bytes());
            }
        };
        tokio::select! {
            () = repeated => {}
            _ = instance.exit() => {}
        }
    });
}

impl Driver for MockDriver {
    fn name(&self) -> &'static str {
        NAME
    }

    /// A simulated task uses no files, so every volume will do.
    fn mount_support(&self) -> MountSupport {
        MountSupport::Shared
    }

    /// A simulated task sends nothing.
    fn network_support(&self) -> NetworkSupport {
        NetworkSupport::Joins
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint {
            detected: true,
            healthy: true,
            description: "Healthy".to_owned(),
            attributes: [(format!("driver.{NAME}"), "1".to_owned())].into(),
        }
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<(), StartError>> {
        Box::pin(self.start_task(config))
    }

    fn recover(
        &self,
        config: TaskConfig,
        started_at: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'_, Recovery> {
        Box::pin(async move { self.recover_task(config, started_at, now) })
    }

    fn wait<'a>(
        &'a self,
        id: &'a TaskId,
        _messages: &'a Messages,
    ) -> BoxFuture<'a, Result<ExitResult, DriverError>> {
        Box::pin(async move { Ok(self.instance(id)?.exit().await) })
    }

    fn stop<'a>(
        &'a self,
        id: &'a TaskId,
        signal: &'a str,
        grace: Duration,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            let Ok(instance) = self.instance(id) else {
                return Ok(());
            };
            instance.stop(signal, grace);
            instance.exit().await;
            Ok(())
        })
    }

    fn signal<'a>(
        &'a self,
        id: &'a TaskId,
        _signal: &'a str,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            let reason = self.instance(id)?.options.signal_error.clone();
            if reason.is_empty() {
                Ok(())
            } else {
                Err(DriverError::Signal {
                    id: id.clone(),
                    reason,
                })
            }
        })
    }

    fn forget<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            self.instances().remove(id);
            Ok(())
        })
    }

    fn leftovers(&self) -> Vec<TaskId> {
        // Tasks of an earlier run of the agent went with its memory.
        Vec::new()
    }
}
