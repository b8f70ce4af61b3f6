//! A snapshot as a stream into a file, which gets its name once it is verified.

use std::io::Write as _;
use std::path::Path;

use tempfile::NamedTempFile;

use super::verified::{Verified, verify};
use crate::context::Context;
use crate::error::Error;

/// Saves a snapshot as `path`, which must not exist.
///
/// # Errors
/// The file cannot be written, the stream broke, or the received bytes are no complete and current
/// snapshot.
pub(super) async fn save(context: &Context, path: &Path) -> Result<Verified, Error> {
    let failed = |error: std::io::Error| {
        Error::text(format!(
            "Error writing snapshot {}: {error}",
            path.display()
        ))
    };
    if path.exists() {
        return Err(Error::text(format!(
            "Error writing snapshot {}: the file exists. Name another one.",
            path.display()
        )));
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        return Err(Error::text(format!(
            "Error writing snapshot {}: there is no directory {}. Create it, or name another file.",
            path.display(),
            directory.display()
        )));
    }
    // Only its owner may read a temporary file, and it is deleted when this function fails.
    let mut file = NamedTempFile::new_in(directory).map_err(failed)?;
    let mut stream = context.connection.save_snapshot().await?;
    let mut min_revision = 0;
    loop {
        let next = context.connection.next_snapshot_chunk(&mut stream).await?;
        let Some(chunk) = next else { break };
        min_revision = min_revision.max(chunk.min_revision);
        file.write_all(&chunk.data).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    // A stream that a gateway ended early shows here.
    let verified = verify(file.path(), "")?;
    if verified.contents.revision < min_revision {
        return Err(Error::text(format!(
            "Error saving a snapshot: it has revision {}, but the store had {min_revision} before: the \
             member of etcd is behind the others. Try again, or check that member.",
            verified.contents.revision
        )));
    }
    file.persist_noclobber(path)
        .map_err(|error| failed(error.error))?;
    // The name is durable, too.
    let synced = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(failed)?;
    Ok(verified)
}
