//! Templates of tasks: files that a node renders before each start.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::duration_ns;

/// One template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// Path of a file with the text; empty: the text is `data`.
    pub source: String,
    /// Path of the rendered file.
    pub destination: String,
    pub data: String,
    pub change_mode: ChangeMode,
    /// As in `SIGHUP`; needed by [`ChangeMode::Signal`] only.
    pub change_signal: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_script: Option<ChangeScript>,
    pub once: bool,
    #[serde(with = "duration_ns")]
    pub splay: Duration,
    /// Octal digits, as in `0644`.
    pub perms: String,
    /// `None`: the agent's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// `None`: the agent's group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    pub left_delimiter: String,
    pub right_delimiter: String,
    /// The rendered lines, `KEY=VALUE`, become variables of the task.
    pub env: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<TemplateWait>,
    pub error_on_missing_key: bool,
}

/// The reaction to changed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeMode {
    Restart,
    Signal,
    Script,
    Noop,
}

impl ChangeMode {
    pub const ALL: [Self; 4] = [Self::Restart, Self::Signal, Self::Script, Self::Noop];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Signal => "signal",
            Self::Script => "script",
            Self::Noop => "noop",
        }
    }
}

/// A command that runs inside the task after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeScript {
    pub command: String,
    pub args: Vec<String>,
    #[serde(with = "duration_ns")]
    pub timeout: Duration,
    pub fail_on_error: bool,
}

/// Bounds of the wait for further changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateWait {
    #[serde(with = "duration_ns")]
    pub min: Duration,
    #[serde(with = "duration_ns")]
    pub max: Duration,
}
