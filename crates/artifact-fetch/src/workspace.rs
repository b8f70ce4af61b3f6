//! Folders of the node's downloads.
//!
//! Shape: `cache/` has downloaded files; `parts/<key>/` is an unfinished download, which another attempt
//! continues, also after a restart of the agent; `work/<number>/` is one unpacking or clone. The folders
//! in `parts` and `work` belong to the helper's user.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Unfinished downloads that are kept for another attempt.
const PARTS_MAX: usize = 16;

pub(crate) struct Workspace {
    base: PathBuf,
    /// User and group of the helper; `None`: the agent's own.
    user: Option<(u32, u32)>,
    next: AtomicU64,
}

/// A folder that is removed with its content when it is dropped.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        let remove = move || {
            let _ = fs::remove_dir_all(path);
        };
        // A tree of many files takes its time.
        if tokio::runtime::Handle::try_current().is_ok() {
            drop(blocking::spawn(remove));
        } else {
            remove();
        }
    }
}

impl Workspace {
    /// Creates the folders, and removes what an agent that died left in `work`.
    pub(crate) fn open(base: PathBuf, user: Option<(u32, u32)>) -> io::Result<Self> {
        let work = base.join("work");
        match fs::remove_dir_all(&work) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        for folder in [base.clone(), work, base.join("parts"), base.join("cache")] {
            builder.create(folder)?;
        }
        let workspace = Self {
            base,
            user,
            next: AtomicU64::new(0),
        };
        workspace.sweep(0);
        Ok(workspace)
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.base.join("cache")
    }

    pub(crate) fn user(&self) -> Option<(u32, u32)> {
        self.user
    }

    /// Creates a folder for an unpacking or a clone.
    pub(crate) fn scratch(&self) -> io::Result<Scratch> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.base.join("work").join(number.to_string());
        self.make(&path)?;
        Ok(Scratch { path })
    }

    /// Returns the folder of a download, with the part of an earlier attempt.
    pub(crate) fn part(&self, key: &str) -> io::Result<PathBuf> {
        let path = self.base.join("parts").join(key);
        self.make(&path)?;
        Ok(path)
    }

    pub(crate) fn remove_part(&self, key: &str) {
        let _ = fs::remove_dir_all(self.base.join("parts").join(key));
    }

    /// Removes the oldest unfinished downloads; `running` of them may be in progress.
    pub(crate) fn sweep(&self, running: usize) {
        let parts = fs::read_dir(self.base.join("parts")).into_iter().flatten();
        let mut parts: Vec<_> = parts
            .filter_map(|part| {
                let path = part.ok()?.path();
                let modified = fs::metadata(&path).and_then(|it| it.modified()).ok();
                Some((modified, path))
            })
            .collect();
        parts.sort();
        let excess = parts.len().saturating_sub(PARTS_MAX + running);
        for (_, path) in parts.into_iter().take(excess) {
            let _ = fs::remove_dir_all(path);
        }
    }

    fn make(&self, path: &Path) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if let Some((uid, gid)) = self.user {
            chown(path, Some(uid), Some(gid))?;
        }
        Ok(())
    }
}
