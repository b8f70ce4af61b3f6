//! Archives in the format of tar.

use std::io::Read;

use tar::EntryType;

use super::tree::Tree;

/// Bytes of extended headers that may follow each other in a row cost memory; the helper's limit of
/// memory ends it.
pub(super) fn unpack(content: Box<dyn Read>, tree: &mut Tree) -> Result<(), String> {
    let mut archive = tar::Archive::new(content);
    let unreadable = |error: std::io::Error| format!("the archive cannot be read: {error}");
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let name = entry.path().map_err(unreadable)?.into_owned();
        let mode = entry.header().mode().unwrap_or(0o644);
        let link = entry.link_name().map_err(unreadable)?;
        let link = link.map(|link| link.into_owned()).unwrap_or_default();
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                tree.file(&name, mode, &mut entry)
            }
            EntryType::Directory => tree.directory(&name, mode),
            EntryType::Symlink => tree.symlink(&name, &link),
            EntryType::Link => tree.hard_link(&name, &link),
            // Of the whole archive, as git writes one with its commit.
            EntryType::XGlobalHeader => Ok(()),
            _ => Err(tree.special(&name)),
        }?;
    }
    Ok(())
}
