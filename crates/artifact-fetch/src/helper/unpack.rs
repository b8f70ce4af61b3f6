//! Archives: read entry by entry, checked, and written below the tree.
//!
//! `streams` decompress; `tree` writes entries; `tar` and `zip` read the formats.

mod bzip2;
mod streams;
mod tar;
mod tree;
mod zip;

use std::fs::File;
use std::path::Path;

use artifact::{Archive, Budget};

use self::tree::Tree;

/// Unpacks `blob` into the new directory `folder`. `name` is that of a single compressed file.
///
/// # Errors
/// A message that names the entry, if it is about one.
pub fn unpack(
    blob: File,
    archive: Archive,
    name: &Path,
    folder: &Path,
    budget: Budget,
) -> Result<(), String> {
    let mut tree = Tree::create(folder, budget)?;
    match archive {
        Archive::Tar(compression) => tar::unpack(streams::open(blob, compression)?, &mut tree),
        Archive::Zip => zip::unpack(blob, &mut tree),
        Archive::Single(compression) => {
            let mut content = streams::open(blob, compression)?;
            tree.file(name, 0o755, &mut content)
        }
    }?;
    tree.finish()
}
