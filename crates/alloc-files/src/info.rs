//! Facts of a file or directory.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::UNIX_EPOCH;

use nix::libc;

/// A file or directory, of which no link was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    pub name: String,
    pub is_dir: bool,
    /// In bytes; 0 unless it is a regular file.
    pub size: u64,
    /// Kind and permissions, as in `drwxr-xr-x`.
    pub mode: String,
    /// Time of the last change in Unix nanoseconds; 0: before 1970.
    pub modified_at_ns: u64,
}

impl FileInfo {
    pub(crate) fn new(name: String, found: &Metadata) -> Self {
        let since = found
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_at_ns = since.map_or(0, |since| {
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        });
        Self {
            name,
            is_dir: found.is_dir(),
            size: if found.is_file() { found.len() } else { 0 },
            mode: mode(found.mode()),
            modified_at_ns,
        }
    }
}

/// Returns what a file is, in words; `None`: a regular file.
pub(crate) fn kind(mode: u32) -> Option<&'static str> {
    match mode & libc::S_IFMT {
        libc::S_IFREG => None,
        libc::S_IFDIR => Some("a directory"),
        libc::S_IFLNK => Some("a symbolic link"),
        libc::S_IFIFO => Some("a named pipe"),
        libc::S_IFSOCK => Some("a socket"),
        libc::S_IFBLK | libc::S_IFCHR => Some("a device"),
        _ => Some("of an unknown kind"),
    }
}

/// Source: POSIX's `ls`.
fn mode(mode: u32) -> String {
    let letter = match mode & libc::S_IFMT {
        libc::S_IFREG => '-',
        libc::S_IFDIR => 'd',
        libc::S_IFLNK => 'l',
        libc::S_IFIFO => 'p',
        libc::S_IFSOCK => 's',
        libc::S_IFBLK => 'b',
        libc::S_IFCHR => 'c',
        _ => '?',
    };
    let mut text = String::from(letter);
    // Class of users, its special bit, and the letter of that.
    for (shift, special, marked) in [
        (6, libc::S_ISUID, 's'),
        (3, libc::S_ISGID, 's'),
        (0, libc::S_ISVTX, 't'),
    ] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => marked,
            (false, true) => marked.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_written_as_ls_writes_them() {
        for (bits, want) in [
            (0o100_640, "-rw-r-----"),
            (0o040_755, "drwxr-xr-x"),
            (0o041_777, "drwxrwxrwt"),
            (0o104_755, "-rwsr-xr-x"),
            (0o102_644, "-rw-r-Sr--"),
            (0o120_777, "lrwxrwxrwx"),
            (0o010_600, "prw-------"),
            (0o060_660, "brw-rw----"),
        ] {
            assert_eq!(mode(bits), want);
        }
    }
}
