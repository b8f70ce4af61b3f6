//! Task events in the terms of Nomad's API: programs read `Type` and `Details`, people the message.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{ExitResult, TaskEvent, Timestamp, duration_ns};

use crate::event::{StartFailure, StartStep};
use crate::time::written;

fn event(event_type: &str, time: Timestamp, message: impl Into<String>) -> TaskEvent {
    TaskEvent {
        event_type: event_type.to_owned(),
        time,
        message: message.into(),
        details: BTreeMap::new(),
    }
}

fn with(mut event: TaskEvent, details: &[(&str, String)]) -> TaskEvent {
    for (key, value) in details {
        event.details.insert((*key).to_owned(), value.clone());
    }
    event
}

pub(crate) fn received(time: Timestamp) -> TaskEvent {
    event("Received", time, "Task received by node")
}

pub(crate) fn task_setup(time: Timestamp) -> TaskEvent {
    event("Task Setup", time, "Building the task's directory")
}

pub(crate) fn setup_failure(time: Timestamp, error: &str) -> TaskEvent {
    with(
        event("Setup Failure", time, error),
        &[
            ("setup_error", error.to_owned()),
            ("fails_task", "true".to_owned()),
        ],
    )
}

pub(crate) fn start_failure(time: Timestamp, failure: &StartFailure) -> TaskEvent {
    let (event_type, key) = match failure.step {
        StartStep::Validation => ("Failed Validation", "validation_error"),
        StartStep::Artifacts => ("Failed Artifact Download", "download_error"),
        StartStep::Hook => ("Task hook failed", "hook_error"),
        StartStep::Driver => ("Driver Failure", "driver_error"),
    };
    with(
        event(event_type, time, failure.message.as_str()),
        &[(key, failure.message.clone())],
    )
}

pub(crate) fn driver_message(time: Timestamp, message: &str) -> TaskEvent {
    with(
        event("Driver", time, message),
        &[("driver_message", message.to_owned())],
    )
}

pub(crate) fn downloading_artifacts(time: Timestamp) -> TaskEvent {
    event("Downloading Artifacts", time, "Downloading artifacts")
}

pub(crate) fn template_message(time: Timestamp, message: &str) -> TaskEvent {
    event("Template", time, message)
}

pub(crate) fn vault_message(time: Timestamp, message: &str) -> TaskEvent {
    event("Vault", time, message)
}

pub(crate) fn consul_message(time: Timestamp, message: &str) -> TaskEvent {
    event("Consul", time, message)
}

pub(crate) fn identity_message(time: Timestamp, message: &str) -> TaskEvent {
    event("Identity", time, message)
}

/// Source: Nomad's names of these events.
pub(crate) fn plugin_health(time: Timestamp, is_healthy: bool, message: &str) -> TaskEvent {
    let event_type = if is_healthy {
        "Plugin became healthy"
    } else {
        "Plugin became unhealthy"
    };
    event(event_type, time, message)
}

pub(crate) fn volume_message(time: Timestamp, message: &str) -> TaskEvent {
    event("Volume", time, message)
}

/// Kafila's own event: the start of the main tasks waits for the checks of these sidecars.
pub(crate) fn waiting_for_sidecars(time: Timestamp, sidecars: &[String]) -> TaskEvent {
    let names = sidecars.join(", ");
    let message = format!("Waiting for the checks of {names} to pass");
    with(
        event("Waiting for sidecars", time, message),
        &[("sidecars", names)],
    )
}

pub(crate) fn started(time: Timestamp) -> TaskEvent {
    event("Started", time, "Task started")
}

pub(crate) fn terminated(time: Timestamp, exit: &ExitResult) -> TaskEvent {
    let mut message = format!("Exit code: {}", exit.code);
    if exit.signal != 0 {
        message.push_str(&format!(", signal: {}", exit.signal));
    }
    if exit.oom_killed {
        message.push_str(", out of memory");
    }
    if !exit.message.is_empty() {
        message.push_str(&format!(", {}", exit.message));
    }
    with(
        event("Terminated", time, message),
        &[
            ("exit_code", exit.code.to_string()),
            ("signal", exit.signal.to_string()),
            ("oom_killed", exit.oom_killed.to_string()),
            ("exit_message", exit.message.clone()),
        ],
    )
}

pub(crate) fn waiting_for_shutdown_delay(time: Timestamp, delay: Duration) -> TaskEvent {
    event(
        "Waiting for shutdown delay",
        time,
        format!("Waiting {} before the task is killed", written(delay)),
    )
}

pub(crate) fn skipping_shutdown_delay(time: Timestamp) -> TaskEvent {
    event(
        "Skipping shutdown delay",
        time,
        "The stop was requested without a delay",
    )
}

pub(crate) fn killing(time: Timestamp, signal: &str, timeout: Duration) -> TaskEvent {
    let signal = if signal.is_empty() {
        "the driver's signal"
    } else {
        signal
    };
    with(
        event(
            "Killing",
            time,
            format!("Sent {signal}, forced after {}", written(timeout)),
        ),
        &[("kill_timeout", written(timeout))],
    )
}

pub(crate) fn kill_failed(time: Timestamp, error: &str) -> TaskEvent {
    with(
        event(
            "Killing",
            time,
            format!("Cannot kill the task yet: {error}"),
        ),
        &[("kill_error", error.to_owned())],
    )
}

pub(crate) fn killed(time: Timestamp) -> TaskEvent {
    event("Killed", time, "Task killed")
}

/// Source: Nomad's type and detail of the event.
pub(crate) fn signaling(time: Timestamp, signal: &str) -> TaskEvent {
    with(
        event("Signaling", time, format!("Sending {signal} to the task")),
        &[("signal", signal.to_owned())],
    )
}

pub(crate) fn restart_signaled(time: Timestamp, reason: &str) -> TaskEvent {
    with(
        event("Restart Signaled", time, reason),
        &[("restart_reason", reason.to_owned())],
    )
}

pub(crate) fn restarting(time: Timestamp, delay: Duration, reason: &str) -> TaskEvent {
    with(
        event(
            "Restarting",
            time,
            format!("Task restarts in {}", written(delay)),
        ),
        &[
            ("start_delay", duration_ns::nanos(delay).to_string()),
            ("restart_reason", reason.to_owned()),
        ],
    )
}

pub(crate) fn not_restarting(time: Timestamp, reason: &str) -> TaskEvent {
    with(
        event("Not Restarting", time, reason),
        &[
            ("restart_reason", reason.to_owned()),
            ("fails_task", "true".to_owned()),
        ],
    )
}

pub(crate) fn sibling_failed(time: Timestamp, sibling: &str) -> TaskEvent {
    with(
        event(
            "Sibling Task Failed",
            time,
            format!("Task {sibling:?} of this group failed"),
        ),
        &[("failed_sibling", sibling.to_owned())],
    )
}

pub(crate) fn leader_dead(time: Timestamp) -> TaskEvent {
    event("Leader Task Dead", time, "The group's leader has ended")
}

pub(crate) fn main_tasks_dead(time: Timestamp) -> TaskEvent {
    event("Main Tasks Dead", time, "The group's main tasks have ended")
}

pub(crate) fn failed_restoring(time: Timestamp, reason: &str, may_start: bool) -> TaskEvent {
    let next = if may_start {
        "starting it again"
    } else {
        "waiting for contact to a server"
    };
    event(
        "Failed Restoring Task",
        time,
        format!("Cannot find the process ({reason}), {next}"),
    )
}

pub(crate) fn reconnected(time: Timestamp) -> TaskEvent {
    event("Reconnected", time, "Node reconnected")
}

pub(crate) fn alloc_unhealthy(time: Timestamp, reason: &str) -> TaskEvent {
    event("Alloc Unhealthy", time, reason)
}
