//! Temporary directories of earlier runs that were killed, with tasks that may still run.
//!
//! A run holds a lock in its directory. The system releases it when the process ends, however it ends,
//! so a directory without a holder is left over.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The first part of the names of temporary directories.
pub(super) const PREFIX: &str = "kafila-dev-";
const LOCK: &str = "dev.lock";

/// Takes the lock of `directory`, until the file is dropped.
///
/// # Errors
/// The file cannot be created, or another process has locked it.
pub(super) fn lock(directory: &Path) -> io::Result<File> {
    let file = File::create_new(directory.join(LOCK))?;
    file.try_lock()?;
    Ok(file)
}

/// Returns the directories of killed runs in `parent`, sorted. Those of other users are left out.
pub(super) fn find(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return Vec::new();
    };
    let named = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.starts_with(PREFIX))
    });
    let mut found: Vec<PathBuf> = named
        .map(|entry| entry.path())
        .filter(|directory| is_left_over(directory))
        .collect();
    found.sort();
    found
}

/// A directory without a lock file is not this command's, or is just being made.
fn is_left_over(directory: &Path) -> bool {
    let opened = OpenOptions::new().write(true).open(directory.join(LOCK));
    opened.is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_without_a_running_process_are_left_over() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (killed, running) = (make("kafila-dev-a"), make("kafila-dev-b"));
        make("kafila-dev-without-lock");
        let other = make("other");
        drop(lock(&killed).unwrap());
        drop(lock(&other).unwrap());
        let _held = lock(&running).unwrap();
        assert_eq!(find(parent.path()), [killed]);
    }
}
