//! The usage of a file system, as `df` counts it.

use std::path::Path;

use nix::sys::statvfs::statvfs;

/// A file system at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSystem {
    block_bytes: u64,
    blocks: u64,
    blocks_used: u64,
    /// For users other than root.
    blocks_available: u64,
    inodes: u64,
    inodes_used: u64,
}

/// A part of a whole, which may be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    part: u64,
    whole: u64,
}

impl FileSystem {
    /// Reads the file system that `path` is on; `None`: it cannot be read.
    pub fn read(path: &Path) -> Option<Self> {
        let found = statvfs(path).ok()?;
        let (blocks, inodes) = (found.blocks(), found.files());
        Some(Self {
            block_bytes: found.fragment_size(),
            blocks,
            blocks_used: blocks.saturating_sub(found.blocks_free()),
            blocks_available: found.blocks_available(),
            inodes,
            inodes_used: inodes.saturating_sub(found.files_free()),
        })
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes)
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> u64 {
        self.blocks_used.saturating_mul(self.block_bytes)
    }

    /// Returns the bytes that users other than root may still take.
    pub fn available(&self) -> u64 {
        self.blocks_available.saturating_mul(self.block_bytes)
    }

    /// Returns the used share of what users may use: blocks reserved for root count as neither.
    pub fn disk_share(&self) -> Share {
        Share {
            part: self.blocks_used,
            whole: self.blocks_used.saturating_add(self.blocks_available),
        }
    }

    /// Returns the used share of the inodes.
    pub fn inode_share(&self) -> Share {
        Share {
            part: self.inodes_used,
            whole: self.inodes,
        }
    }
}

impl Share {
    #[expect(clippy::cast_precision_loss, reason = "percentages have few digits")]
    pub fn percent(self) -> f64 {
        if self.whole == 0 {
            0.0
        } else {
            100.0 * self.part as f64 / self.whole as f64
        }
    }

    /// Returns the percentage, rounded down.
    pub fn whole_percent(self) -> u64 {
        let percent = u128::from(self.part) * 100;
        let percent = percent.checked_div(self.whole.into()).unwrap_or(0);
        u64::try_from(percent).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_reserved_for_root_count_neither_as_used_nor_as_free() {
        let found = FileSystem {
            block_bytes: 4_096,
            blocks: 100,
            blocks_used: 60,
            blocks_available: 35,
            inodes: 0,
            inodes_used: 0,
        };
        assert_eq!(found.disk_share().whole_percent(), 63);
        assert!((found.disk_share().percent() - 63.157).abs() < 0.001);
        assert_eq!(found.inode_share().whole_percent(), 0, "it counts none");
        assert!(found.inode_share().percent() < 0.001);
        assert_eq!(
            (found.size(), found.used(), found.available()),
            (409_600, 245_760, 143_360)
        );
    }

    #[test]
    fn a_path_that_does_not_exist_has_no_file_system() {
        assert_eq!(FileSystem::read(Path::new("/no/such/path")), None);
        let root = FileSystem::read(Path::new("/")).unwrap();
        assert!(root.used() <= root.size());
    }
}
