//! The payload that a job was dispatched with, as a file of the task's.
//!
//! Source: Nomad's public behaviour: below the task's `local` directory, for any user to read and
//! write, written before the task starts for the first time.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path};

use model::{Job, Task};

/// Any user: tasks of one allocation may run as different ones.
const MODE: u32 = 0o777;

/// Puts the payload where the task looks for it; what is there already stays: a task that is
/// restarted finds what it made of it.
///
/// # Errors
/// Says which file could not be written.
pub(super) fn put(job: &Job, task: &Task, local: &Path) -> Result<(), String> {
    let Some(wanted) = &task.dispatch_payload else {
        return Ok(());
    };
    // A job that was not dispatched has no payload, and one whose payload is optional may have none.
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
    // Whole or not there at all: a crash in between must not leave half of it.
    let part = path.with_extension("kafila-part");
    let write = || {
        let _ = fs::remove_file(&part);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(MODE);
        let mut file = options.open(&part)?;
        file.write_all(&job.payload.0)?;
        // The process's umask has taken some away.
        file.set_permissions(fs::Permissions::from_mode(MODE))?;
        fs::rename(&part, &path)
    };
    write().map_err(cannot)
}

/// Makes the directories between `local` and the file. One that a task has made a link of, here or
/// in an allocation whose data moved over, leads elsewhere: nothing is written there.
fn make_folders(local: &Path, path: &Path) -> io::Result<()> {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
    folders.retain(|folder| folder.starts_with(local) && *folder != local);
    for folder in folders.into_iter().rev() {
        match folder.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(io::Error::other("a directory on the way is none")),
            Err(_) => fs::create_dir(folder)?,
        }
    }
    Ok(())
}

/// Joins what was checked when the job was registered; whatever came since, it stays below.
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
    fn the_task_finds_the_payload_in_its_file_and_keeps_it_over_restarts() {
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
    fn what_would_escape_is_refused() {
        let base = tempfile::tempdir().unwrap();
        for file in ["../x", "/tmp/x", "a/../../x", ".."] {
            let (job, task) = dispatched(file);
            assert!(put(&job, &task, base.path()).is_err(), "{file}");
        }
    }

    #[test]
    fn a_link_that_a_task_has_made_is_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), base.path().join("in")).unwrap();
        let (job, task) = dispatched("in/x");
        assert!(put(&job, &task, base.path()).is_err());
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
