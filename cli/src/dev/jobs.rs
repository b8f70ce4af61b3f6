//! Runs job files the way a user would: with `kafila job run`.

use std::path::Path;

use service_kit::run::BoxError;

/// Runs one job file against the gateway and shows what becomes of it.
///
/// # Errors
/// The command could not be started, or the job did not become healthy; the command has said why.
pub(super) async fn run(gateway: &str, file: &Path) -> Result<(), BoxError> {
    println!("==> kafila job run {}", file.display());
    let status = tokio::process::Command::new(std::env::current_exe()?)
        .args(["job", "run"])
        .arg(file)
        .env("KAFILA_ADDR", gateway)
        .kill_on_drop(true)
        .status()
        .await?;
    if status.success() {
        return Ok(());
    }
    Err(format!("kafila job run {} ended with {status}", file.display()).into())
}
