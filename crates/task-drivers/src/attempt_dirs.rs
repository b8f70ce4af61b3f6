//! Directories of attempts of tasks, in which a driver keeps its records:
//! `<base>/<alloc id>/<task>/<attempt>/`.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use model::AllocId;

use crate::driver::TaskId;

#[derive(Clone, Debug)]
pub struct AttemptDirs {
    base: PathBuf,
}

impl AttemptDirs {
    pub fn new(base: PathBuf) -> Self {
        Self { base }
    }

    pub fn directory(&self, id: &TaskId) -> PathBuf {
        let alloc = self.base.join(id.alloc_id.to_string());
        alloc.join(&id.task).join(id.attempt.to_string())
    }

    /// Creates the directory of an attempt, for the agent's user alone; returns it.
    ///
    /// # Errors
    /// The disk refuses it.
    pub fn create(&self, id: &TaskId) -> io::Result<PathBuf> {
        let directory = self.directory(id);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&directory)?;
        Ok(directory)
    }

    /// Removes the directory of an attempt with what is in it, and those of its task and its allocation if it
    /// was their last.
    ///
    /// # Errors
    /// The disk refuses it. A directory that does not exist is removed already.
    pub fn remove(&self, id: &TaskId) -> io::Result<()> {
        let directory = self.directory(id);
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for parent in directory.ancestors().skip(1).take(2) {
            if fs::remove_dir(parent).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Returns all attempts that have a directory.
    pub fn all(&self) -> Vec<TaskId> {
        let allocs = names(&self.base);
        let ids = allocs.iter().filter_map(|name| name.parse().ok());
        ids.flat_map(|alloc_id| self.of(alloc_id)).collect()
    }

    /// Returns the attempts of an allocation that have a directory.
    pub fn of(&self, alloc_id: AllocId) -> Vec<TaskId> {
        let alloc = self.base.join(alloc_id.to_string());
        let mut found = Vec::new();
        for task in names(&alloc) {
            let attempts = names(&alloc.join(&task));
            for attempt in attempts.iter().filter_map(|name| name.parse().ok()) {
                found.push(TaskId {
                    alloc_id,
                    task: task.clone(),
                    attempt,
                });
            }
        }
        found
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_task_and_allocation_are_removed_with_the_last_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let dirs = AttemptDirs::new(folder.path().to_owned());
        let id = |task: &str, attempt| TaskId {
            alloc_id: AllocId::from_random(1),
            task: task.to_owned(),
            attempt,
        };
        let (first, second, other) = (id("web", 1), id("web", 2), id("log", 1));
        for id in [&first, &second, &other] {
            dirs.create(id).unwrap();
        }
        let mut all = dirs.all();
        all.sort();
        assert_eq!(all, [other.clone(), first.clone(), second.clone()]);
        dirs.remove(&first).unwrap();
        dirs.remove(&first).unwrap();
        dirs.remove(&other).unwrap();
        assert_eq!(dirs.of(first.alloc_id), std::slice::from_ref(&second));
        assert_eq!(names(folder.path()).len(), 1);
        dirs.remove(&second).unwrap();
        assert!(names(folder.path()).is_empty());
    }
}
