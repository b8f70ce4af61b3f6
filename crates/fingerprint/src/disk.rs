//! Disk size: the total, not the free space, of the file system with the allocations' files.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::attributes::Attributes;

const MIB: u64 = 1024 * 1024;
/// The disk size of a simulated node, which has no disk. Every job asks for disk space, and there
/// nothing uses it.
const SIMULATED_MIB: u64 = 1024 * 1024;

/// Returns the disk size in MiB; a `total_mib` other than 0 overrides it.
pub(crate) fn fingerprint(
    total_mib: u64,
    directory: Option<&Path>,
    attributes: &mut Attributes,
) -> u64 {
    let Some(directory) = directory else {
        return if total_mib > 0 {
            total_mib
        } else {
            SIMULATED_MIB
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
