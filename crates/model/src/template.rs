//! Templates of tasks: files that a node renders before each start.

use std::path::{Component, Path, PathBuf};
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

/// A file of an allocation, by the directory that it is below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateFile {
    /// Below the task's own directory.
    Task(PathBuf),
    /// Below the directory that the allocation's tasks share.
    Shared(PathBuf),
}

impl TemplateFile {
    /// Returns the file that `path` of a template names; `None` if it is outside of both directories.
    ///
    /// A path is relative to the task's directory, with or without a slash at its start; `/alloc/…` and
    /// `../alloc/…` are in the shared directory. Only the text of the path is read, no link is followed.
    pub fn at(path: &str) -> Option<Self> {
        const TASK: &str = "<task>";
        let mut parts = vec![TASK];
        if path.ends_with('/') {
            return None;
        }
        if let Some(shared) = path.strip_prefix("/alloc/") {
            parts = vec!["alloc"];
            push(&mut parts, shared)?;
        } else {
            push(&mut parts, path)?;
        }
        match parts.split_first()? {
            (_, []) => None,
            (first, rest) if *first == TASK => Some(Self::Task(rest.iter().collect())),
            (first, rest) if *first == "alloc" => Some(Self::Shared(rest.iter().collect())),
            _ => None,
        }
    }
}

/// Adds the components of `path`; `None` if it leaves the allocation.
fn push<'a>(parts: &mut Vec<&'a str>, path: &'a str) -> Option<()> {
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::CurDir | Component::RootDir => {}
            Component::Prefix(_) => return None,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_templates_stay_in_the_task_or_in_the_shared_directory() {
        let task = |path: &str| Some(TemplateFile::Task(path.into()));
        let shared = |path: &str| Some(TemplateFile::Shared(path.into()));
        for (path, want) in [
            ("local/app.conf", task("local/app.conf")),
            ("/secrets/key.pem", task("secrets/key.pem")),
            ("local/../secrets/./x", task("secrets/x")),
            ("../alloc/data/x", shared("data/x")),
            ("/alloc/data/x", shared("data/x")),
            ("alloc/x", task("alloc/x")),
            ("", None),
            ("/", None),
            ("local/", None),
            ("..", None),
            ("../alloc", None),
            ("../other/local/x", None),
            ("../../x", None),
            ("../../../etc/passwd", None),
            ("/alloc/../x", None),
        ] {
            assert_eq!(TemplateFile::at(path), want, "{path:?}");
        }
    }
}
