//! The file system that allocations' files are on: what it has in all, not what is free.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use super::Attributes;

const MIB: u64 = 1024 * 1024;
/// What a node without a disk says it has: a job's disk is only a figure there, and every job asks
/// for some.
const PRETENDED_MIB: u64 = 1024 * 1024;

/// Returns the disk in MiB; `total_mib` wins when it is not 0.
pub(super) fn fingerprint(
    total_mib: u64,
    directory: Option<&Path>,
    attributes: &mut Attributes,
) -> u64 {
    let Some(directory) = directory else {
        return if total_mib > 0 {
            total_mib
        } else {
            PRETENDED_MIB
        };
    };
    let bytes = statvfs(directory).map_or(0, |found| {
        found.blocks().saturating_mul(found.fragment_size())
    });
    let bytes = if total_mib > 0 {
        total_mib * MIB
    } else {
        bytes
    };
    let volume = directory.display().to_string();
    attributes.insert("unique.storage.volume".to_owned(), volume);
    attributes.insert("unique.storage.bytestotal".to_owned(), bytes.to_string());
    bytes / MIB
}
