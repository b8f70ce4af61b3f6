//! Job files of the command line, run with `kafila job run`.

use std::path::{Path, PathBuf};

use model::Timestamp;
use service_kit::run::BoxError;

use crate::args::job::JobFile;
use crate::error::Error;
use crate::files::job as job_file;
use crate::output::colour::Colour;

/// Validates all job files before anything is started.
///
/// # Errors
/// The first file that cannot be read or is invalid.
pub(super) fn check(files: &[PathBuf], now: Timestamp, colour: Colour) -> Result<(), Error> {
    for file in files {
        // Standard input can be read only once, by the command that runs the job.
        if file.as_os_str() == "-" {
            continue;
        }
        let file = JobFile {
            path: file.clone(),
            hcl2_strict: true,
            ..JobFile::default()
        };
        let parsed = job_file::read(&file, colour)?;
        job_file::check(&parsed, now, colour)
            .map_err(|error| Error::text(format!("Error in {}: {error}", file.path.display())))?;
    }
    Ok(())
}

/// Runs one job file and shows its deployment.
///
/// # Errors
/// The command cannot be started, or the job did not become healthy; the command printed the reason.
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
