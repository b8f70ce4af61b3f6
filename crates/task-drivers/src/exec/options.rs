//! Options of an `exec` task.

use std::path::PathBuf;

use serde::Deserialize;

use crate::driver::StartError;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// `private` or `host`; empty: the node's default.
    #[serde(default)]
    pub(crate) pid_mode: String,
    /// As `pid_mode`.
    #[serde(default)]
    pub(crate) ipc_mode: String,
    #[serde(default)]
    pub(crate) cap_add: Vec<String>,
    #[serde(default)]
    pub(crate) cap_drop: Vec<String>,
    /// Absolute, inside the task's root.
    #[serde(default)]
    pub(crate) work_dir: Option<PathBuf>,
    /// -1000 to 1000.
    #[serde(default)]
    pub(crate) oom_score_adj: i32,
}

impl Options {
    pub(super) fn check(&self) -> Result<(), StartError> {
        if self.command.trim().is_empty() {
            return wrong("command: is empty: name a program");
        }
        if self
            .work_dir
            .as_ref()
            .is_some_and(|path| !path.is_absolute())
        {
            return wrong("work_dir: want an absolute path");
        }
        Ok(())
    }
}

/// Returns whether a namespace is the task's own.
pub(super) fn is_private(option: &str, mode: &str, default: &str) -> Result<bool, StartError> {
    match if mode.is_empty() { default } else { mode } {
        "private" => Ok(true),
        "host" => Ok(false),
        other => wrong(&format!(
            "{option}: is {other:?}: want \"private\" or \"host\""
        )),
    }
}

fn wrong<T>(text: &str) -> Result<T, StartError> {
    Err(StartError::Config(text.to_owned()))
}
