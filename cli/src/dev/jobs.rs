//! Runs job files the way a user would: with `kafila job run`.

use std::path::{Path, PathBuf};

use model::Timestamp;
use service_kit::run::BoxError;

use crate::args::job::JobFile;
use crate::error::Error;
use crate::jobfile;
use crate::output::colour::Colour;

/// Reads and checks every job file once, so that what can be seen to be wrong without a cluster is
/// an error before anything is started.
///
/// # Errors
/// The first file that cannot be read, is no job, or breaks a rule.
pub(super) fn check(files: &[PathBuf], now: Timestamp, colour: Colour) -> Result<(), Error> {
    for file in files {
        // Standard input can be read only once: by the command that runs it.
        if file.as_os_str() == "-" {
            continue;
        }
        let file = JobFile {
            path: file.clone(),
            hcl2_strict: true,
            ..JobFile::default()
        };
        let parsed = jobfile::read(&file, colour)?;
        jobfile::to_wire(&parsed, colour)?;
        jobfile::check(&parsed, now, colour)
            .map_err(|error| Error::text(format!("Error in {}: {error}", file.path.display())))?;
    }
    Ok(())
}

/// Runs one job file against the gateway and shows what becomes of it.
///
/// # Errors
/// The command could not be started, or the job did not become healthy; the command has said why.
pub(super) async fn run(gateway: &str, file: &Path) -> Result<(), BoxError> {
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
