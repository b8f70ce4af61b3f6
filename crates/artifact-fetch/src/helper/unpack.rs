//! Archives: read entry by entry, checked, and written below the tree.
//!
//! `streams` decompress; `tree` writes entries; `tar` and `zip` read the formats.

mod bzip2;
mod streams;
mod tar;
mod tree;
mod zip;

use std::fs::File;

use artifact::{Archive, Budget};

use self::tree::Tree;
use crate::wire::{TREE, Unpack};

/// Unpacks `blob` into the tree.
///
/// # Errors
/// A message that names the entry, if it is about one.
pub(super) fn unpack(work: &Unpack, blob: File) -> Result<(), String> {
    let archive = Archive::named(&work.archive).ok_or("the kind of archive is unknown")?;
    let budget = Budget::new(work.entries_max, work.bytes_max);
    let mut tree = Tree::create(std::path::Path::new(TREE), budget)?;
    match archive {
        Archive::Tar(compression) => tar::unpack(streams::open(blob, compression)?, &mut tree),
        Archive::Zip => zip::unpack(blob, &mut tree),
        Archive::Single(compression) => {
            let mut content = streams::open(blob, compression)?;
            tree.file(std::path::Path::new(&work.name), 0o755, &mut content)
        }
    }?;
    tree.finish()
}

/// Returns an error about an entry.
fn about(name: &std::path::Path, problem: impl std::fmt::Display) -> String {
    let shown: String = name.to_string_lossy().chars().take(200).collect();
    format!("archive entry {shown:?}: {problem}")
}
