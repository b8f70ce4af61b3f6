//! Commands of docker and of the repository's scripts.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

/// Timeout of one command: the slowest makes the base image.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Returns the root of the repository that this was built from.
pub fn repository() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// Runs a command in the repository's root and returns its standard output, trimmed.
///
/// # Errors
/// It cannot be started, fails or takes too long; the error has its output.
pub async fn run(
    program: &str,
    arguments: &[&str],
    environment: &[(String, String)],
) -> Result<String> {
    run_within(TIMEOUT, program, arguments, environment).await
}

/// As [`run`], with a timeout of its own.
///
/// # Errors
/// As [`run`].
pub async fn run_within(
    timeout: Duration,
    program: &str,
    arguments: &[&str],
    environment: &[(String, String)],
) -> Result<String> {
    let shown = format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .envs(environment.iter().cloned())
        .current_dir(repository())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(timeout, output)
        .await
        .with_context(|| format!("{shown} takes longer than {timeout:?}"))?
        .with_context(|| format!("cannot start {shown}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{shown}: {}\n{stdout}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(stdout.trim().to_owned())
}

/// Runs `docker` with `arguments`.
///
/// # Errors
/// As [`run`].
pub async fn docker(arguments: &[&str]) -> Result<String> {
    run("docker", arguments, &[]).await
}

/// Returns the requirement that this machine lacks, `None` if containers can be run.
pub async fn missing_requirement() -> Option<String> {
    let advice = "scripts/install-docker installs what is missing";
    if let Err(error) = docker(&["info"]).await {
        return Some(format!("no Docker engine ({advice}): {error:#}"));
    }
    if compose().await.is_none() {
        return Some(format!(
            "neither docker compose nor docker-compose ({advice})"
        ));
    }
    None
}

/// Returns the words of Compose's command: `docker compose`, else `docker-compose`.
pub async fn compose() -> Option<&'static [&'static str]> {
    if docker(&["compose", "version"]).await.is_ok() {
        return Some(&["docker", "compose"]);
    }
    let v1 = run("docker-compose", &["version"], &[]).await;
    v1.is_ok().then_some(&["docker-compose"])
}
