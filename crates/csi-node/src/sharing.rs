//! Sharing of mounts: a container shows the mounts that it makes to the node only below a directory
//! whose mount is shared.

use std::fs;
use std::io;
use std::path::Path;

use nix::mount::{MsFlags, mount};

use crate::layout::Layout;

impl Layout {
    /// Makes the directory of volumes a shared mount, unless it is on one.
    ///
    /// # Errors
    /// The mount cannot be made, as without the rights of root.
    pub fn share(&self) -> io::Result<()> {
        let volumes = fs::canonicalize(self.volumes())?;
        let text = fs::read_to_string("/proc/self/mountinfo")?;
        match mount_of(&text, &volumes) {
            Some(found) if found.is_shared => return Ok(()),
            Some(found) if found.is_itself => {}
            _ => {
                let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
                mount(Some(&volumes), &volumes, None::<&str>, flags, None::<&str>)?;
            }
        }
        let none = None::<&str>;
        let flags = MsFlags::MS_SHARED | MsFlags::MS_REC;
        mount(none, &volumes, none, flags, none)?;
        Ok(())
    }
}

/// The mount that a directory is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    is_shared: bool,
    /// The directory is the mount's own root.
    is_itself: bool,
}

/// Reads `mountinfo`. Source: proc_pid_mountinfo(5). Later lines lie over earlier ones.
fn mount_of(mountinfo: &str, directory: &Path) -> Option<Found> {
    let mut best: Option<(usize, Found)> = None;
    for line in mountinfo.lines() {
        let mut fields = line.split(' ');
        let Some(point) = fields.nth(4) else {
            continue;
        };
        // A blank is escaped; none of our directories is below such a mount point.
        let point = Path::new(point);
        if !directory.starts_with(point) {
            continue;
        }
        let options = fields.skip(1).take_while(|field| *field != "-");
        let found = Found {
            is_shared: options
                .into_iter()
                .any(|field| field.starts_with("shared:")),
            is_itself: point == directory,
        };
        let length = point.as_os_str().len();
        if best.is_none_or(|(longest, _)| length >= longest) {
            best = Some((length, found));
        }
    }
    best.map(|(_, found)| found)
}

/// Tells whether something is mounted on `directory` itself.
///
/// # Errors
/// `mountinfo` cannot be read.
pub fn is_mounted(directory: &Path) -> io::Result<bool> {
    let text = fs::read_to_string("/proc/self/mountinfo")?;
    let escaped = directory.display().to_string().replace(' ', "\\040");
    let mut points = text.lines().filter_map(|line| line.split(' ').nth(4));
    Ok(points.any(|point| point == escaped))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:2 / /var rw - ext4 /dev/sda2 rw
31 30 8:2 /lib/csi /var/lib/csi rw shared:7 master:1 - ext4 /dev/sda2 rw";

    #[test]
    fn the_innermost_mount_of_a_directory_counts() {
        let of = |directory: &str| mount_of(INFO, Path::new(directory));
        let found = |is_shared, is_itself| {
            Some(Found {
                is_shared,
                is_itself,
            })
        };
        assert_eq!(of("/srv"), found(true, false));
        assert_eq!(of("/var/lib"), found(false, false));
        assert_eq!(of("/var"), found(false, true));
        assert_eq!(of("/var/lib/csi"), found(true, true));
        assert_eq!(of("/var/lib/csi/volumes"), found(true, false));
        assert_eq!(mount_of("", Path::new("/srv")), None);
    }
}
