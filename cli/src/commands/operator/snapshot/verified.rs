//! Verification of a snapshot file.

use std::fs::File;
use std::path::Path;

use etcd_snapshot::{Checksum, Contents, SnapshotError, checksum, contents};

use crate::error::Error;

/// A verified snapshot.
pub(super) struct Verified {
    pub(super) checksum: Checksum,
    pub(super) contents: Contents,
}

/// Verifies the checksum of a file, and reads its contents.
///
/// # Errors
/// The file cannot be read, or is no complete snapshot.
pub(super) fn verify(path: &Path, prefix: &str) -> Result<Verified, Error> {
    let read = || -> Result<Verified, SnapshotError> {
        let mut file = File::open(path)?;
        let checksum = checksum::verify(&mut file)?;
        let contents = contents::read(file, checksum.database_bytes, prefix)?;
        Ok(Verified { checksum, contents })
    };
    read().map_err(|error| {
        let cause = match &error {
            SnapshotError::Read(cause) => format!(": {cause}"),
            _ => String::new(),
        };
        Error::text(format!("Error reading snapshot {path:?}: {error}{cause}"))
    })
}
