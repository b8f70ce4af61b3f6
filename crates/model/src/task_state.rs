//! Task states: a task's phase and events, as its node reports them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::exact;
use crate::time::Timestamp;

/// Number of kept events of a task. Source: Nomad's public behaviour.
pub const MAX_TASK_EVENTS: usize = 10;

/// A task's state as its node last reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskState {
    pub phase: TaskPhase,
    /// The task used up its restart policy, or could not be started.
    pub failed: bool,
    pub restarts: u32,
    pub last_restart: Timestamp,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
    /// Oldest first, at most [`MAX_TASK_EVENTS`].
    #[serde(deserialize_with = "exact::list")]
    pub events: Vec<TaskEvent>,
}

impl TaskState {
    /// Appends `event`, and drops the oldest beyond [`MAX_TASK_EVENTS`].
    pub fn record(&mut self, event: TaskEvent) {
        self.events.push(event);
        if self.events.len() > MAX_TASK_EVENTS {
            self.events.remove(0);
        }
    }

    pub fn is_successful(&self) -> bool {
        self.phase == TaskPhase::Dead && !self.failed
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskPhase {
    #[default]
    Pending,
    Running,
    Dead,
}

impl TaskPhase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Dead => "dead",
        }
    }
}

/// Result of one run of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitResult {
    /// Exit code as a shell shows it: 128 + the signal when one ended the process.
    pub code: i32,
    /// The signal that ended the process; 0: none.
    pub signal: i32,
    #[serde(default)]
    pub oom_killed: bool,
    /// Another failure, for people; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl ExitResult {
    pub fn is_success(&self) -> bool {
        self.code == 0 && self.signal == 0 && self.message.is_empty()
    }
}

/// One event of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEvent {
    /// As in `Received`, `Task Setup`, `Started`, `Terminated`: the words of Nomad's API.
    #[serde(rename = "type")]
    pub event_type: String,
    pub time: Timestamp,
    /// For people.
    pub message: String,
    /// For programs: `exit_code`, `signal`, `restart_reason`, `start_delay`, `fails_task` …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}
