//! Processes of the suite: output in a file, SIGKILL on demand, no leftovers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A child process that is killed when dropped.
#[derive(Debug)]
pub struct Process {
    pub name: String,
    pub log: PathBuf,
    child: Child,
}

impl Process {
    /// Starts `command` with both outputs appended to `log`.
    ///
    /// # Errors
    /// The log cannot be opened or the command not started.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let open = || File::options().create(true).append(true).open(log);
        let stdout = open().with_context(|| format!("cannot open {}", log.display()))?;
        let stderr = open().with_context(|| format!("cannot open {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .with_context(|| format!("cannot start {name}: {command:?}"))?;
        Ok(Self {
            name: name.to_owned(),
            log: log.to_owned(),
            child,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its resident memory in KiB.
    ///
    /// # Errors
    /// It has ended.
    pub fn resident_kib(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.pid());
        let status = fs::read_to_string(path).with_context(|| format!("{} ended", self.name))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = resident.and_then(|text| text.split_whitespace().next());
        Ok(number.context("no VmRSS")?.parse()?)
    }

    /// Returns whether it still runs; reaps it otherwise.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it with SIGKILL: no handler runs.
    pub fn kill(mut self) {
        // An error means that it is gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Sends SIGTERM and waits. Returns the exit code.
    ///
    /// # Errors
    /// It still runs after `timeout`; it is killed then.
    pub async fn terminate(self, timeout: Duration) -> Result<i32> {
        self.end_with(Signal::SIGTERM, timeout).await
    }

    /// As [`Self::terminate`], with another signal.
    ///
    /// # Errors
    /// Those of [`Self::terminate`].
    pub async fn end_with(mut self, signal: Signal, timeout: Duration) -> Result<i32> {
        self.signal(signal)?;
        let deadline = tokio::time::Instant::now() + timeout;
        while tokio::time::Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code().unwrap_or(-1));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let tail = self.log_tail();
        let name = self.name.clone();
        self.kill();
        bail!("{name} did not end within {timeout:?} of {signal}; end of its log:\n{tail}");
    }

    /// # Errors
    /// The process is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.pid()).context("a pid is small")?);
        kill(pid, signal).with_context(|| format!("cannot send {signal} to {}", self.name))
    }

    /// Returns the last lines of its output, for messages.
    pub fn log_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns every process with a working directory or command line below `directory`: the processes
/// of a node with its data there.
pub fn below(directory: &Path) -> Vec<(i32, String)> {
    let needle = directory.to_string_lossy().into_owned();
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir("/proc") else {
        return found;
    };
    for entry in entries.flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let cwd = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if cwd.starts_with(directory) || command.contains(&needle) {
            found.push((pid, command));
        }
    }
    found
}

/// Kills every process that [`below`] finds, after a failed test.
pub fn kill_below(directory: &Path) {
    for (pid, _) in below(directory) {
        if pid != std::process::id().cast_signed() {
            // An error means that it ended by itself meanwhile.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
