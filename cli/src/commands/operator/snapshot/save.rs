//! `kafila operator snapshot save`: into a file or a bucket.

use std::path::PathBuf;

use jiff::Timestamp;

use super::download::save;
use super::schedule::file_name;
use super::store::Store;
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
