//! Free space of the file system that the helper writes to: a full disk would stop every task.

use nix::sys::statvfs::statvfs;

/// Bytes between two looks.
const STEP: u64 = 16 << 20;
/// Free space that is left in any case; on small file systems it is 5 percent.
const LEFT: u64 = 1 << 30;

/// Bytes written since the last look.
#[derive(Default)]
pub(super) struct DiskSpaceGuard {
    since: u64,
    has_looked: bool,
}

impl DiskSpaceGuard {
    /// Counts written bytes.
    ///
    /// # Errors
    /// The file system is nearly full.
    pub(super) fn wrote(&mut self, bytes: u64) -> Result<(), String> {
        self.since = self.since.saturating_add(bytes);
        if self.has_looked && self.since < STEP {
            return Ok(());
        }
        (self.since, self.has_looked) = (0, true);
        // A file system that does not answer gives no reason to stop.
        let Ok(found) = statvfs(".") else {
            return Ok(());
        };
        // Of one width on each platform but not of the same.
        #[allow(
            clippy::useless_conversion,
            reason = "the types differ between platforms"
        )]
        let (free, blocks) = (
            u64::from(found.blocks_available()),
            u64::from(found.blocks()),
        );
        #[allow(
            clippy::useless_conversion,
            reason = "the type differs between platforms"
        )]
        let size = u64::from(found.fragment_size());
        let left = LEFT.min(blocks.saturating_mul(size) / 20);
        if free.saturating_mul(size) < left {
            return Err("the disk of the node is nearly full".to_owned());
        }
        Ok(())
    }
}

/// Returns the error about a download that is longer than allowed.
pub(super) fn too_large(bytes_max: u64) -> String {
    format!(
        "it has more than {bytes_max} bytes, the limit `artifact.download_bytes_max` of the node"
    )
}
