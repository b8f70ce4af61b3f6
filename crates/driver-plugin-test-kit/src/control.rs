//! Faults that are files in the control directory; a test makes and removes them while the plugin runs.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// No call is answered.
pub const HANG: &str = "hang";
/// A start starts the task, and is not answered.
pub const START_HANGS: &str = "start-hangs";
/// A start takes [`SLOW`], also when its caller has given up.
pub const START_SLOW: &str = "start-slow";
/// Time of a slow start.
pub const SLOW: Duration = Duration::from_secs(1);
/// A start starts the task, then the process ends.
pub const START_DIES: &str = "start-dies";
/// A start fails; the file's text is the reason, and `retry` in it makes it recoverable.
pub const START_FAILS: &str = "start-fails";
/// A recovery fails.
pub const RECOVERY_FAILS: &str = "recovery-fails";
/// The driver is not healthy.
pub const UNHEALTHY: &str = "unhealthy";
/// Commands have no streams.
pub const NO_STREAMS: &str = "no-streams";
/// The log of calls, a line each: the method and the task's id.
pub const CALLS: &str = "calls";

/// Returns whether a fault is on.
pub(crate) fn is_on(control: Option<&Path>, fault: &str) -> bool {
    control.is_some_and(|control| control.join(fault).exists())
}

pub(crate) fn log_call(control: Option<&Path>, method: &str, task_id: &str) {
    let Some(control) = control else {
        return;
    };
    let mut options = OpenOptions::new();
    if let Ok(mut file) = options.create(true).append(true).open(control.join(CALLS)) {
        // A test that reads it fails.
        let _ = writeln!(file, "{method} {task_id}");
    }
}
