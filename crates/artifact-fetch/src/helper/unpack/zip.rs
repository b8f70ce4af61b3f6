//! Archives in the format of zip.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use zip::ZipArchive;

use super::about;
use super::tree::Tree;

/// The kind of a file in its Unix mode.
const KIND: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
/// Bytes of a link's target.
const TARGET_MAX: u64 = 4096;

pub(super) fn unpack(blob: File, tree: &mut Tree) -> Result<(), String> {
    let unreadable = |error| format!("the archive cannot be read: {error}");
    let blob = std::io::BufReader::with_capacity(1 << 16, blob);
    let mut archive = ZipArchive::new(blob).map_err(unreadable)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(unreadable)?;
        // The raw name: the library's own forms of it hide `..`. Some programs write backslashes.
        let name = entry.name().map_err(unreadable)?.replace('\\', "/");
        let name = PathBuf::from(name);
        let mode = entry.unix_mode();
        match mode.map_or(0, |mode| mode & KIND) {
            _ if entry.is_dir() => tree.directory(&name, mode.unwrap_or(0o755)),
            DIRECTORY => tree.directory(&name, mode.unwrap_or(0o755)),
            SYMLINK => {
                let mut target = Vec::new();
                let read = (&mut entry).take(TARGET_MAX + 1).read_to_end(&mut target);
                read.map_err(|error| about(&name, error))?;
                tree.symlink(&name, std::ffi::OsStr::from_bytes(&target).as_ref())
            }
            // Programs without Unix modes leave the kind out.
            0 | REGULAR => {
                let mode = mode.filter(|mode| mode & 0o777 != 0).unwrap_or(0o644);
                tree.file(&name, mode, &mut entry)
            }
            _ => Err(tree.special(&name)),
        }?;
    }
    Ok(())
}
