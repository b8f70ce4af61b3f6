//! The archive: one folder in a compressed tar file.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::part::Part;

/// Only the owner may read the archive and its files.
const MODE: u32 = 0o600;

/// Writes the parts that exist into `path`, which must not exist, below `folder`.
///
/// # Errors
/// The file exists or cannot be written; it may be incomplete.
pub(super) fn write(path: &Path, folder: &str, parts: &[Part]) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path)?;
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    for part in parts {
        let Ok(content) = &part.content else { continue };
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(MODE);
        let name = format!("{folder}/{}", part.name);
        archive.append_data(&mut header, name, content.as_slice())?;
    }
    let file = archive.into_inner()?.finish()?;
    file.sync_all()
}
