//! The mode that copies the output of a task that another program runs: see [`crate::output_copy`].

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nix::fcntl::Flock;
use nix::unistd::setsid;

use super::files;
use super::logs::STREAMS;
use super::run::reset_signals;
use crate::log_files::RotatingLog;
use crate::output_copy::{CopyRequest, DONE, ENDED, REQUEST, lock};

/// Capacity of a pipe.
const BUFFER_BYTES: usize = 64 * 1024;
/// Shortest and longest interval of looks for the task's end: a thousand silent tasks cost little. Output that
/// comes within two looks is copied.
const POLL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(800));
/// Tries to take the lock, and the pause between them.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(7);

/// Detaches from the agent and copies until the task has ended, or its directory is gone.
pub(super) fn run(directory: &Path) -> io::Result<()> {
    // Fails for the leader of a process group, which a shell that starts it makes of it.
    let _ = setsid();
    reset_signals()?;
    copy(directory)
}

pub(crate) fn copy(directory: &Path) -> io::Result<()> {
    let Some(_lock) = take_lock(directory) else {
        return Ok(());
    };
    let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no output.json");
    let request: CopyRequest = files::read(directory, REQUEST)?.ok_or_else(missing)?;
    let copied = Arc::new(AtomicU64::new(0));
    let pipes = [&request.pipes.stdout, &request.pipes.stderr];
    for (stream, pipe) in STREAMS.into_iter().zip(pipes) {
        // Also for writing: the pipe then has no end, whatever writers come and go.
        let pipe = OpenOptions::new().read(true).write(true).open(pipe)?;
        let logs = &request.logs;
        let log = RotatingLog::new(
            &logs.directory,
            &logs.task,
            stream,
            logs.max_files,
            logs.max_file_bytes,
        )
        .begin();
        let copied = Arc::clone(&copied);
        thread::Builder::new()
            .name(stream.as_str().to_owned())
            .spawn(move || copy_stream(pipe, log, &copied))?;
    }
    let (mut before, mut pause) = (u64::MAX, POLL.0);
    while directory.exists() {
        thread::sleep(pause);
        let now = copied.load(Ordering::Acquire);
        let has_ended = directory.join(ENDED).exists();
        if has_ended && now == before {
            break;
        }
        pause = if has_ended {
            POLL.0
        } else {
            (pause * 2).min(POLL.1)
        };
        before = now;
    }
    // Fails without the directory, whose removal ends the wait as well.
    let _ = std::fs::write(directory.join(DONE), "");
    Ok(())
}

/// Takes the directory's lock; `None`: another such process has it. An agent that looks has it for a moment.
fn take_lock(directory: &Path) -> Option<Flock<File>> {
    for _ in 0..LOCK_TRIES {
        if let Some(lock) = lock(directory) {
            return Some(lock);
        }
        thread::sleep(LOCK_PAUSE);
    }
    None
}

/// Reads without end. A full disk does not stop it, because a full pipe would stop the task.
fn copy_stream(mut pipe: File, mut log: RotatingLog, copied: &AtomicU64) {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut is_failing = false;
    loop {
        let length = match pipe.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                eprintln!("cannot read a pipe: {error}");
                return;
            }
        };
        let error = log.write(&buffer[..length]);
        if let Some(error) = error.as_ref().filter(|_| !is_failing) {
            eprintln!("output is being dropped: {error}");
        }
        is_failing = error.is_some();
        copied.fetch_add(u64::try_from(length).unwrap_or(0), Ordering::AcqRel);
    }
}
