//! The `kafila` binary under test, and its commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// Returns the path of the `kafila` binary of this build's profile.
///
/// `cargo test --workspace` builds it before any test runs. A run of this package alone uses the last
/// build, or builds it if there is none.
pub fn kafila() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its own path");
        // A copied test program has the binary beside it.
        let beside = test.with_file_name("kafila");
        if beside.is_file() {
            return beside;
        }
        let profile = test
            .ancestors()
            .find(|directory| directory.join("deps").is_dir() && directory.join("build").is_dir())
            .expect("tests lie below target/<profile>");
        let path = profile.join("kafila");
        if !path.is_file() {
            build(profile);
        }
        path
    })
    .clone()
}

/// Returns the path of the storage driver for directories, which is built with the tests.
pub fn csi_driver() -> PathBuf {
    kafila().with_file_name("csi-dir-driver")
}

/// Returns the path of the plugin with a task driver, which is built with the tests.
pub fn driver_plugin() -> PathBuf {
    kafila().with_file_name("stand-in-plugin")
}

fn build(profile: &Path) {
    let mut build = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    build.args([
        "build",
        "--quiet",
        "--locked",
        "--package",
        "kafila",
        "--bin",
        "kafila",
    ]);
    if profile.ends_with("release") {
        build.arg("--release");
    }
    if let Some(target) = profile.parent() {
        build.arg("--target-dir").arg(target);
    }
    let status = build.status().expect("cargo can be started");
    assert!(status.success(), "cannot build the kafila binary");
}

/// Output of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl CommandOutput {
    /// Returns the output if the command succeeded.
    ///
    /// # Errors
    /// The command failed; the error contains its output.
    pub fn ok(self) -> Result<Self> {
        ensure!(
            self.code == 0,
            "exit code {}\n{}\n{}",
            self.code,
            self.stdout,
            self.stderr
        );
        Ok(self)
    }

    /// Returns its output as JSON.
    ///
    /// # Errors
    /// It is not JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.stdout)
            .with_context(|| format!("not JSON: {}\n{}", self.stdout, self.stderr))
    }
}

/// Runs `kafila` with `arguments` against the gateway at `address`.
///
/// # Errors
/// The binary cannot be started.
pub async fn run(address: &str, arguments: &[&str]) -> Result<CommandOutput> {
    run_with(address, arguments, &[]).await
}

/// As [`run`], with additional environment variables.
///
/// # Errors
/// The binary cannot be started.
pub async fn run_with(
    address: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<CommandOutput> {
    let mut command = tokio::process::Command::new(kafila());
    command
        .args(arguments)
        .env("KAFILA_ADDR", address)
        .env("NO_COLOR", "1")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = command.output().await.context("cannot start kafila")?;
    Ok(CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
