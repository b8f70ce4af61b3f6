//! Logs of this process for remote readers, and its log level, which changes at run time.
//!
//! In reading order: [`record`] is one line of a log as data; [`recorder`] is the tracing layer that
//! makes records; [`recent`] keeps the last lines that the process printed; [`monitors`] sends lines of
//! any level to remote readers without printing them; [`level`] is the filter of the printed lines.
//! Without a monitor no line below the process's level is formatted.

pub mod level;
pub mod monitors;
mod recent;
pub mod record;
mod recorder;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::{EnvFilter, Registry, reload};

use self::level::{BadFilter, Change, Current, Level};
use self::monitors::{Monitor, Monitors, TooManyMonitors};
use self::recent::Recent;
use self::record::Record;
pub(crate) use self::recorder::Recorder;

static PROCESS: OnceLock<Logs> = OnceLock::new();

/// The logs of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Logs {
    recent: Arc<Mutex<Recent>>,
    monitors: Monitors,
    level: Arc<Level>,
}

impl Logs {
    /// Returns the logs of this process; `None` before [`crate::Telemetry::start`].
    pub fn of_process() -> Option<Self> {
        PROCESS.get().cloned()
    }

    /// Returns logs whose printed lines pass `filter`, and that filter for the layer that prints.
    ///
    /// # Errors
    /// `filter` is none.
    pub(crate) fn new(
        filter: &str,
    ) -> Result<(Self, reload::Layer<EnvFilter, Registry>), BadFilter> {
        let (level, filter) = Level::new(filter)?;
        let logs = Self {
            recent: Arc::default(),
            monitors: Monitors::default(),
            level: Arc::new(level),
        };
        Ok((logs, filter))
    }

    pub(crate) fn become_process(self) {
        // Only the first telemetry of a process starts.
        let _ = PROCESS.set(self);
    }

    /// Returns the layer that keeps printed lines. It belongs below the filter of the layer that
    /// prints.
    pub(crate) fn recent_layer(&self) -> Recorder {
        Recorder::recent(Arc::clone(&self.recent))
    }

    /// Returns the layer that serves monitors, and its filter.
    pub(crate) fn monitor_layer(&self) -> (Recorder, monitors::MonitorFilter) {
        (
            Recorder::monitors(self.monitors.clone()),
            self.monitors.wanted(),
        )
    }

    /// Returns the newest `count` lines that the process printed, the oldest first; at most those
    /// that it keeps.
    pub fn recent(&self, count: usize) -> Vec<Arc<Record>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.newest(count)
    }

    /// Follows lines that pass `filter`, from now on, whether the process prints them or not.
    ///
    /// # Errors
    /// The process has its maximum of monitors.
    pub fn monitor(&self, filter: Targets) -> Result<Monitor, TooManyMonitors> {
        self.monitors.open(filter)
    }

    /// Returns the filter of the printed lines.
    pub fn level(&self) -> Current {
        self.level.current()
    }

    /// Replaces the filter of the printed lines. An empty `filter` restores the configured one; after
    /// `expires_after` the configured one returns by itself. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// `filter` is none. The level is unchanged then.
    pub fn set_level(
        &self,
        filter: &str,
        expires_after: Option<Duration>,
    ) -> Result<Change, BadFilter> {
        level::set(&self.level, filter, expires_after)
    }
}

#[cfg(test)]
mod tests;
