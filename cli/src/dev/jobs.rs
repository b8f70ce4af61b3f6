//! Runs job files the way a user would: with `kafila job run`.

use std::path::{Path, PathBuf};

use service_kit::run::BoxError;

use crate::args::job::JobFile;
use crate::error::Error;
use crate::jobfile;
use crate::output::colour::Colour;

/// Reads every job file once, so that a wrong name is an error before anything is started.
///
/// # Errors
/// The first file that cannot be read, or is no job.
pub(super) fn check(files: &[PathBuf], colour: Colour) -> Result<(), Error> {
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
        jobfile::to_wire(&jobfile::read(&file, colour)?, colour)?;
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
