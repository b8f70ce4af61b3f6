//! Allocation directories on disk: created, checked, taken over by a replacement, removed.
//!
//! Source: Nomad's public layout and modes. A directory that a task may write to is open to every
//! user, because tasks of one allocation may run as different users. The directory of all allocations
//! hides their names from other users. It does not keep them out, because a path may be known: a task's
//! secrets always have a directory above them, or are one, that other users of the node cannot enter.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::dirs::{AllocDirs, TaskDirs, is_safe_name};
use model::AllocId;

const OPEN: u32 = 0o777;
const STICKY: u32 = 0o1777;
/// Secrets belong to one task. Its driver gives them to the task's user.
const PRIVATE: u32 = 0o700;

/// Creates missing directories. `previous`: the allocation whose data moves over; `None`: none.
///
/// # Errors
/// The path that could not be created.
pub fn build<'a>(
    dirs: &AllocDirs,
    tasks: impl Iterator<Item = &'a str> + Clone,
    previous: Option<&AllocDirs>,
) -> Result<(), String> {
    make(&dirs.root, 0o755)?;
    make(&dirs.shared(), OPEN)?;
    for directory in [dirs.logs(), dirs.data(), dirs.shared().join("tmp")] {
        make(&directory, OPEN)?;
    }
    for name in tasks.clone() {
        if !is_safe_name(name) {
            return Err(format!("task name {name:?} is not a directory name"));
        }
        let TaskDirs {
            root,
            local,
            secrets,
            tmp,
            ..
        } = dirs.task(name);
        // The secrets first: [`open_secrets`] of an earlier run may have opened them below a private root.
        for (directory, mode) in [
            (secrets, PRIVATE),
            (root, OPEN),
            (local, OPEN),
            (tmp, STICKY),
        ] {
            make(&directory, mode)?;
        }
    }
    if let Some(previous) = previous {
        take_over(&previous.data(), &dirs.data());
        for name in tasks {
            take_over(&previous.task(name).local, &dirs.task(name).local);
        }
    }
    Ok(())
}

/// Opens the secrets of a task to every user of its image, and closes the directory above them to other
/// users of the node. For tasks that see their directories as mounts. Idempotent.
///
/// # Errors
/// The path whose mode could not be set.
pub fn open_secrets(dirs: &TaskDirs) -> Result<(), String> {
    // The root first: the secrets must never be open below an open root.
    make(&dirs.root, PRIVATE)?;
    make(&dirs.secrets, OPEN)
}

/// Checks that the directories of an earlier run of the agent still exist.
///
/// # Errors
/// The path of the missing directory.
pub fn check<'a>(dirs: &AllocDirs, tasks: impl Iterator<Item = &'a str>) -> Result<(), String> {
    for directory in std::iter::once(dirs.logs()).chain(tasks.map(|name| dirs.task(name).root)) {
        if !directory.is_dir() {
            return Err(format!("{} has vanished", directory.display()));
        }
    }
    Ok(())
}

/// Removes all directories. Missing ones are not an error.
///
/// # Errors
/// A path that could not be removed.
pub fn remove(dirs: &AllocDirs) -> io::Result<()> {
    match fs::remove_dir_all(&dirs.root) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Lists the directories of allocations that are not among `wanted`.
pub fn except(base: &Path, wanted: &BTreeSet<AllocId>) -> Vec<AllocDirs> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| !wanted.contains(id))
        .map(|id| AllocDirs::new(base, id))
        .collect()
}

fn make(directory: &Path, mode: u32) -> Result<(), String> {
    fs::create_dir_all(directory)
        .and_then(|()| fs::set_permissions(directory, fs::Permissions::from_mode(mode)))
        .map_err(|error| format!("cannot create {}: {error}", directory.display()))
}

/// Replaces an empty directory by `from`. A failure is no error, because a task must start even
/// without the earlier data; a directory with data of its own stays.
fn take_over(from: &Path, to: &Path) {
    if from.is_dir() && fs::remove_dir(to).is_ok() && fs::rename(from, to).is_err() {
        // Restores the empty directory.
        let _ = make(to, OPEN);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn directories_have_the_modes_that_tasks_need() {
        let base = tempfile::tempdir().unwrap();
        let dirs = AllocDirs::new(base.path(), AllocId::from_random(1));
        for _ in 0..2 {
            build(&dirs, ["web"].into_iter(), None).unwrap();
        }
        let task = dirs.task("web");
        assert_eq!(mode(&dirs.root), 0o755);
        for open in [
            &dirs.shared(),
            &dirs.logs(),
            &dirs.data(),
            &task.root,
            &task.local,
        ] {
            assert_eq!(mode(open), 0o777, "{}", open.display());
        }
        assert_eq!(mode(&task.tmp), 0o1777);
        assert_eq!(mode(&task.secrets), 0o700);
        open_secrets(&task).unwrap();
        assert_eq!((mode(&task.root), mode(&task.secrets)), (0o700, 0o777));
        build(&dirs, ["web"].into_iter(), None).unwrap();
        assert_eq!((mode(&task.root), mode(&task.secrets)), (0o777, 0o700));
        check(&dirs, ["web"].into_iter()).unwrap();
        assert!(
            check(&dirs, ["other"].into_iter())
                .unwrap_err()
                .contains("other has vanished")
        );
        assert!(build(&dirs, ["../x"].into_iter(), None).is_err());
        remove(&dirs).unwrap();
        remove(&dirs).unwrap();
        assert!(check(&dirs, ["web"].into_iter()).is_err());
    }

    #[test]
    fn scenario_060_data_moves_over_by_renaming() {
        let base = tempfile::tempdir().unwrap();
        let old = AllocDirs::new(base.path(), AllocId::from_random(1));
        let new = AllocDirs::new(base.path(), AllocId::from_random(2));
        build(&old, ["web"].into_iter(), None).unwrap();
        fs::write(old.data().join("rows"), "1").unwrap();
        fs::write(old.task("web").local.join("cache"), "2").unwrap();
        let inode = fs::metadata(old.data()).unwrap().ino();
        build(&new, ["web"].into_iter(), Some(&old)).unwrap();
        assert_eq!(fs::metadata(new.data()).unwrap().ino(), inode);
        assert_eq!(
            fs::read_to_string(new.task("web").local.join("cache")).unwrap(),
            "2"
        );
        // Idempotent after a crash: nothing is left to move, and nothing is lost.
        build(&new, ["web"].into_iter(), Some(&old)).unwrap();
        assert_eq!(fs::read_to_string(new.data().join("rows")).unwrap(), "1");
    }
}
