//! Dispatch payload: written to a file of the task before its first start.
//!
//! Source: Nomad's public behaviour: below the task's `local` directory, readable and writable by
//! every user.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path};

use model::{Job, Task};

/// Every user, because tasks of one allocation may run as different users.
const MODE: u32 = 0o777;

/// Writes the payload file of `task` below `local`. An existing file stays: a restarted task finds
/// its own changes.
///
/// # Errors
/// The file that could not be written.
pub fn put(job: &Job, task: &Task, local: &Path) -> Result<(), String> {
    let Some(wanted) = &task.dispatch_payload else {
        return Ok(());
    };
    // The job was not dispatched, or its payload is optional.
    if job.payload.is_empty() {
        return Ok(());
    }
    let cannot =
        |error: io::Error| format!("cannot write the payload to {:?}: {error}", wanted.file);
    let path = below(local, &wanted.file).ok_or_else(|| {
        format!(
            "payload file {:?} is not below the task's directory",
            wanted.file
        )
    })?;
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    make_folders(local, &path).map_err(cannot)?;
    // Atomic: a crash must not leave half of the file.
    let part = path.with_extension("kafila-part");
    let write = || {
        let _ = fs::remove_file(&part);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(MODE);
        let mut file = options.open(&part)?;
        file.write_all(&job.payload.0)?;
        // The process's umask applies to `mode` above.
        file.set_permissions(fs::Permissions::from_mode(MODE))?;
        fs::rename(&part, &path)
    };
    write().map_err(cannot)
}

/// Creates the directories between `local` and the file. A symbolic link on the way, left by a task
/// of this allocation or of its predecessor, is refused: it may lead out of the allocation.
fn make_folders(local: &Path, path: &Path) -> io::Result<()> {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
    folders.retain(|folder| folder.starts_with(local) && *folder != local);
    for folder in folders.into_iter().rev() {
        match folder.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(io::Error::other("a path component is not a directory")),
            Err(_) => fs::create_dir(folder)?,
        }
    }
    Ok(())
}

/// Joins the paths; `None` if the file would not be below `local`. Registration has checked the same.
fn below(local: &Path, file: &str) -> Option<std::path::PathBuf> {
    let file = Path::new(file);
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    (file.file_name().is_some() && file.components().all(plain)).then(|| local.join(file))
}

#[cfg(test)]
mod tests {
    use model::{DispatchPayload, Payload};
    use test_kit::builders;

    use super::*;

    fn dispatched(file: &str) -> (Job, Task) {
        let mut job = builders::batch("p/dispatch-1-a", 1);
        job.payload = Payload(b"rows\xff".to_vec());
        let mut task = builders::task("t");
        task.dispatch_payload = Some(DispatchPayload {
            file: file.to_owned(),
        });
        (job, task)
    }

    #[test]
    fn the_payload_file_is_written_once_and_kept_over_restarts() {
        let base = tempfile::tempdir().unwrap();
        let (job, task) = dispatched("in/rows.csv");
        put(&job, &task, base.path()).unwrap();
        let path = base.path().join("in/rows.csv");
        assert_eq!(fs::read(&path).unwrap(), b"rows\xff");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o777);
        assert_eq!(fs::read_dir(base.path().join("in")).unwrap().count(), 1);
        fs::write(&path, "half done").unwrap();
        put(&job, &task, base.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"half done");
    }

    #[test]
    fn without_a_payload_there_is_no_file() {
        let base = tempfile::tempdir().unwrap();
        let (mut job, mut task) = dispatched("x");
        job.payload = Payload::default();
        put(&job, &task, base.path()).unwrap();
        let (with_payload, _) = dispatched("x");
        task.dispatch_payload = None;
        put(&with_payload, &task, base.path()).unwrap();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_path_outside_the_directory_is_refused() {
        let base = tempfile::tempdir().unwrap();
        for file in ["../x", "/tmp/x", "a/../../x", ".."] {
            let (job, task) = dispatched(file);
            assert!(put(&job, &task, base.path()).is_err(), "{file}");
        }
    }

    #[test]
    fn a_symbolic_link_of_a_task_is_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), base.path().join("in")).unwrap();
        let (job, task) = dispatched("in/x");
        assert!(put(&job, &task, base.path()).is_err());
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
