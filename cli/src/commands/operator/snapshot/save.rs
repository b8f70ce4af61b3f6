//! `kafila operator snapshot save`: a stream into a file, which gets its name once it is verified.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tempfile::NamedTempFile;

use super::schedule::file_name;
use super::store::Store;
use super::verified::{Verified, verify};
use crate::args::operator::snapshot::Save;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(super) async fn run(context: &Context, args: &Save) -> Result<Exit, Error> {
    let text = args.file.as_ref().and_then(|path| path.to_str());
    if let Some(text) = text.filter(|text| s3::Location::is_meant(text)) {
        return save_to_store(context, args, text).await;
    }
    let path = match &args.file {
        Some(path) => path.clone(),
        None => PathBuf::from(file_name(now(context))),
    };
    let saved = save(context, &path).await?;
    context.finish(&format!(
        "Saved revision {} into {} ({} bytes)",
        saved.contents.revision,
        path.display(),
        saved.checksum.database_bytes
    ))
}

/// Saves a snapshot as an object, which must not exist.
async fn save_to_store(context: &Context, args: &Save, text: &str) -> Result<Exit, Error> {
    let invalid = |problem| Error::text(format!("Error writing snapshot {text}: {problem}"));
    let mut location = s3::Location::read(text).map_err(invalid)?;
    if location.key.is_empty() || location.key.ends_with('/') {
        location.key = location.key_of(&file_name(now(context)));
    }
    let store = Store::new(location.clone(), &args.s3);
    if store.size(&location.key).await?.is_some() {
        return Err(Error::text(format!(
            "Error writing snapshot {location}: the object exists. Name another one."
        )));
    }
    let saved = store.save(context, &location.key).await?;
    context.finish(&format!(
        "Saved revision {} into {location} ({} bytes)",
        saved.contents.revision, saved.checksum.database_bytes
    ))
}

/// Returns the time of the context's clock.
pub(super) fn now(context: &Context) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(context.clock.now())).unwrap_or(Timestamp::MAX)
}

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
