//! Paths of an allocation's files.
//!
//! Shape, below the node's allocation directory:
//! ```text
//! <alloc id>/alloc/{data,logs,tmp}      shared by its tasks
//! <alloc id>/<task>/{local,secrets,tmp} a task's own
//! ```

use std::path::{Component, Path, PathBuf};

use model::AllocId;

/// The directories of one allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocDirs {
    pub root: PathBuf,
}

/// The directories that one task sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDirs {
    /// `NOMAD_ALLOC_DIR`: shared by the allocation's tasks.
    pub shared: PathBuf,
    pub logs: PathBuf,
    /// The working directory.
    pub root: PathBuf,
    /// `NOMAD_TASK_DIR`.
    pub local: PathBuf,
    /// `NOMAD_SECRETS_DIR`.
    pub secrets: PathBuf,
    pub tmp: PathBuf,
}

impl TaskDirs {
    /// The directories as a task with a root directory of its own sees them.
    pub fn in_image() -> Self {
        Self {
            shared: "/alloc".into(),
            logs: "/alloc/logs".into(),
            root: "/".into(),
            local: "/local".into(),
            secrets: "/secrets".into(),
            tmp: "/tmp".into(),
        }
    }
}

/// Removes `.`, `..` and doubled separators, without looking at the disk.
pub fn clean(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(result.pop()),
            other => result.push(other),
        }
    }
    result
}

impl AllocDirs {
    /// `base` is the node's allocation directory.
    pub fn new(base: &Path, alloc_id: AllocId) -> Self {
        Self {
            root: base.join(alloc_id.to_string()),
        }
    }

    pub fn shared(&self) -> PathBuf {
        self.root.join("alloc")
    }

    pub fn logs(&self) -> PathBuf {
        self.shared().join("logs")
    }

    pub fn data(&self) -> PathBuf {
        self.shared().join("data")
    }

    pub fn task(&self, task: &str) -> TaskDirs {
        let root = self.root.join(task);
        TaskDirs {
            shared: self.shared(),
            logs: self.logs(),
            local: root.join("local"),
            secrets: root.join("secrets"),
            tmp: root.join("tmp"),
            root,
        }
    }
}

/// Returns whether `task` is usable as the name of its own directory.
pub fn is_safe_name(task: &str) -> bool {
    !task.is_empty()
        && task != "."
        && task != ".."
        && task != "alloc"
        && !task.contains(['/', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_cannot_name_itself_out_of_its_allocation() {
        for name in ["", ".", "..", "a/b", "../x", "alloc", "nul\0"] {
            assert!(!is_safe_name(name), "{name:?}");
        }
        for name in ["web", "web-1", "...", "a b", "é"] {
            assert!(is_safe_name(name), "{name:?}");
        }
    }
}
