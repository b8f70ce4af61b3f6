//! A Docker Engine of the run's own: its data, its socket and its containerd are the run's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::jobs::IMAGE;
use crate::api::eventually;
use crate::process::Process;

const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Engine {
    directory: PathBuf,
    /// Tasks outlive the engine's process.
    is_live_restore: bool,
    /// The parent of the containers' control groups.
    group: String,
    process: Option<Process>,
}

impl Engine {
    /// Starts the engine, and makes the image of the tasks.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(directory: &Path, group: &str, is_live_restore: bool) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        // The machine's own file may contradict the flags.
        std::fs::write(directory.join("daemon.json"), "{}")?;
        let mut engine = Self {
            directory: directory.to_owned(),
            is_live_restore,
            group: group.to_owned(),
            process: None,
        };
        engine.start_again()?;
        engine.until_answer().await?;
        engine.make_image()?;
        Ok(engine)
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.join("docker.sock")
    }

    /// Starts the engine's process again.
    ///
    /// # Errors
    /// It runs, or cannot be started.
    pub fn start_again(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the engine runs already");
        let path = |name: &str| self.directory.join(name);
        let mut command = Command::new("dockerd");
        command
            .arg("--config-file")
            .arg(path("daemon.json"))
            .arg("--data-root")
            .arg(path("data"))
            .arg("--exec-root")
            .arg(path("exec"))
            .arg("--pidfile")
            .arg(path("docker.pid"))
            .arg("--host")
            .arg(format!("unix://{}", self.socket().display()))
            .args(["--bridge", "none", "--iptables=false", "--ip6tables=false"])
            .args(["--storage-driver", "vfs"])
            .args(["--cgroup-parent", &self.group]);
        if self.is_live_restore {
            command.arg("--live-restore");
        }
        self.process = Some(Process::start("dockerd", command, &path("dockerd.log"))?);
        Ok(())
    }

    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    pub fn is_started(&self) -> bool {
        self.process.is_some()
    }

    /// Waits until it answers.
    ///
    /// # Errors
    /// It does not in time.
    pub async fn until_answer(&self) -> Result<()> {
        let answered = eventually(TIMEOUT, || async { self.docker(&["version"]).map(drop) });
        let log = || self.process.as_ref().map(Process::log_tail);
        answered.await.with_context(|| log().unwrap_or_default())
    }

    /// Runs a command of its client.
    ///
    /// # Errors
    /// The command failed.
    pub fn docker(&self, arguments: &[&str]) -> Result<String> {
        let output = self.client().args(arguments).output()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "docker {arguments:?}: {error}");
        Ok(text)
    }

    fn client(&self) -> Command {
        let mut command = Command::new("docker");
        command.arg("--host");
        command.arg(format!("unix://{}", self.socket().display()));
        command
    }

    /// Makes the image of this machine's programs and their libraries.
    fn make_image(&self) -> Result<()> {
        let mut files: Vec<String> = Vec::new();
        for program in ["/bin/sh", "/bin/sleep", "/usr/bin/flock"] {
            let listed = Command::new("ldd").arg(program).output()?;
            let text = String::from_utf8(listed.stdout)?;
            let words = text.split_whitespace().filter(|word| word.starts_with('/'));
            files.extend(words.map(str::to_owned));
            files.push(program.to_owned());
        }
        files.sort();
        files.dedup();
        let mut archive = Command::new("tar")
            .args(["--create", "--dereference", "--file=-", "--directory=/"])
            .args(files.iter().map(|file| file.trim_start_matches('/')))
            .stdout(Stdio::piped())
            .spawn()?;
        let input = archive.stdout.take().context("it has an output")?;
        let mut import = self.client();
        import.args(["import", "-", IMAGE]).stdin(input);
        let imported = import.output()?;
        ensure!(archive.wait()?.success(), "tar failed");
        ensure!(imported.status.success(), "docker import: {imported:?}");
        Ok(())
    }

    /// Ends it.
    ///
    /// # Errors
    /// It does not end in time.
    pub async fn stop(mut self) -> Result<()> {
        if let Some(process) = self.process.take() {
            process.end_with(Signal::SIGTERM, TIMEOUT).await?;
        }
        Ok(())
    }
}
