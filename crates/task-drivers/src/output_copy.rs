//! Copy of a task's output from named pipes into its log files, by a small process that outlives the agent:
//! for tasks that other programs start and that only know a path to write to.
//!
//! The pipes keep their reader while no agent runs, so that no writer is refused or waits. The process is the
//! agent's own binary in a mode of its own ([`crate::supervisor`]). Its directory identifies it: a start is
//! idempotent, because only one process holds the directory's lock.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};

use crate::dirs::TaskDirs;
use crate::driver::TaskConfig;
use crate::raw_exec::SupervisorCommand;
use crate::supervisor::files::{self, Durability, Logs};

/// The flag of this mode.
pub(crate) const COPY_FLAG: &str = "--copy-output";
pub(crate) const REQUEST: &str = "output.json";
pub(crate) const LOCK: &str = "output.lock";
/// The task has ended: the process ends once the pipes are empty.
pub(crate) const ENDED: &str = "output.ended";
/// It has copied all of it.
pub(crate) const DONE: &str = "output.done";
const LOG: &str = "output.log";
/// Time from the start of the process to its lock.
const START_LIMIT: Duration = Duration::from_secs(2);
/// Pause between two looks at a process that ends.
const POLL: Duration = Duration::from_millis(20);

/// Where the output comes from and goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyRequest {
    pub(crate) pipes: Pipes,
    pub(crate) logs: Logs,
}

/// The named pipes of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipes {
    pub stdout: PathBuf,
    pub stderr: PathBuf,
}

/// Makes the pipes in `directory`, which exists. Returns `None` for a task whose output is not collected.
///
/// # Errors
/// The directory cannot be written.
pub fn prepare(
    directory: &Path,
    config: &TaskConfig,
    dirs: &TaskDirs,
) -> io::Result<Option<Pipes>> {
    let Some(logs) = Logs::of(config, dirs) else {
        return Ok(None);
    };
    let pipes = Pipes {
        stdout: directory.join("stdout.fifo"),
        stderr: directory.join("stderr.fifo"),
    };
    for pipe in [&pipes.stdout, &pipes.stderr] {
        match mkfifo(pipe, Mode::S_IRUSR | Mode::S_IWUSR) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let request = CopyRequest {
        pipes: pipes.clone(),
        logs,
    };
    files::write(directory, REQUEST, &request, Durability::Crash)?;
    Ok(Some(pipes))
}

/// Starts the process, unless it runs already. The caller waits for the child, which ends with the task. In a
/// tokio runtime.
///
/// # Errors
/// The program cannot be started.
pub fn spawn(command: &SupervisorCommand, directory: &Path) -> io::Result<Child> {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(directory.join(LOG))?;
    Command::new(&command.program)
        .arg0("kafila-output-copy")
        .args(&command.args)
        .arg(directory)
        .arg(COPY_FLAG)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
}

/// Lets the process end once it has copied the rest, and waits for that at most `limit`. Blocks. Returns
/// whether it has.
pub fn finish(directory: &Path, limit: Duration) -> bool {
    if !directory.join(REQUEST).exists() || fs::write(directory.join(ENDED), "").is_err() {
        return true;
    }
    let (mut waited, mut without) = (Duration::ZERO, Duration::ZERO);
    while !directory.join(DONE).exists() {
        // It may just have been started, or something has killed it.
        without = match lock(directory) {
            Some(_) => without + POLL,
            None => Duration::ZERO,
        };
        if waited >= limit || without >= START_LIMIT {
            return false;
        }
        std::thread::sleep(POLL);
        waited += POLL;
    }
    true
}

/// Takes the directory's lock; `None`: another process has it.
pub(crate) fn lock(directory: &Path) -> Option<Flock<fs::File>> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(directory.join(LOCK))
        .ok()?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use model::AllocId;
    use model::job::LogConfig;

    use super::*;
    use crate::dirs::AllocDirs;
    use crate::driver::TaskId;

    #[test]
    fn output_is_copied_from_several_writers_until_the_task_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("records");
        let id = TaskId {
            alloc_id: AllocId::from_random(1),
            task: "web".to_owned(),
            attempt: 1,
        };
        let dirs = AllocDirs::new(folder.path(), id.alloc_id).task("web");
        fs::create_dir_all(&dirs.logs).unwrap();
        fs::create_dir(&records).unwrap();
        let config = TaskConfig {
            logs: LogConfig {
                max_files: 2,
                max_file_size_mib: 1,
                disabled: false,
            },
            ..TaskConfig::new(id)
        };
        let pipes = prepare(&records, &config, &dirs).unwrap().unwrap();
        let copying = {
            let records = records.clone();
            std::thread::spawn(move || crate::supervisor::copy_output(&records))
        };
        for text in ["one\n", "two\n"] {
            let mut pipe = OpenOptions::new().write(true).open(&pipes.stdout).unwrap();
            pipe.write_all(text.as_bytes()).unwrap();
        }
        let mut pipe = OpenOptions::new().write(true).open(&pipes.stderr).unwrap();
        pipe.write_all(b"bad").unwrap();
        assert!(finish(&records, Duration::from_secs(20)));
        copying.join().unwrap().unwrap();
        let read = |name: &str| fs::read_to_string(dirs.logs.join(name)).unwrap();
        assert_eq!(read("web.stdout.0"), "one\ntwo\n");
        assert_eq!(read("web.stderr.0"), "bad");
    }
}
