//! The directory of an allocation, and what paths in it name: the kernel resolves each path beneath the
//! directory's descriptor and follows no link (`openat2`, Linux 5.6).

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc;

use crate::error::Error;
use crate::info::{FileInfo, kind};
use crate::path::FilePath;

/// Permission of everyone to read.
const READABLE: u32 = 0o004;

/// The directory of one allocation.
#[derive(Debug)]
pub struct Directory(OwnedFd);

impl Directory {
    /// Opens the directory by its path on the node.
    ///
    /// # Errors
    /// It is gone, or the system's error.
    pub fn open(path: &Path) -> io::Result<Self> {
        let directory = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
            .open(path)?;
        Ok(Self(directory.into()))
    }

    /// Returns the facts of a file or directory.
    ///
    /// # Errors
    /// There is none, or the path has a link before its last part.
    pub fn info(&self, path: &FilePath) -> Result<FileInfo, Error> {
        // If the last part is a link, the facts are the link's own.
        let (_, found) = self.find(path, OFlag::O_NOFOLLOW)?;
        Ok(FileInfo::new(path.name().to_owned(), &found))
    }

    /// Opens a regular file to read it.
    ///
    /// # Errors
    /// There is none, or it is something else or has several names, see [`Error`].
    pub(crate) fn open_file(&self, path: &FilePath) -> Result<(File, Metadata), Error> {
        let text = || path.to_string();
        let (handle, found) = self.find(path, OFlag::empty())?;
        if found.is_dir() {
            return Err(Error::IsDirectory { path: text() });
        }
        if let Some(kind) = kind(found.mode()) {
            return Err(Error::NotRegular { path: text(), kind });
        }
        // A task may give a file of the node another name where the kernel does not forbid it
        // (fs.protected_hardlinks); one that everyone may read tells it nothing new.
        if found.nlink() > 1 && found.mode() & READABLE == 0 {
            return Err(Error::Linked { path: text() });
        }
        let file = reopen(&handle, 0).map_err(|error| Error::io(path, error))?;
        Ok((file, found))
    }

    /// Opens a directory to list it; the path is that of its descriptor.
    pub(crate) fn open_directory(&self, path: &FilePath) -> Result<File, Error> {
        let (handle, found) = self.find(path, OFlag::empty())?;
        if !found.is_dir() {
            return Err(Error::NotDirectory {
                path: path.to_string(),
            });
        }
        reopen(&handle, libc::O_DIRECTORY).map_err(|error| Error::io(path, error))
    }

    /// Finds a file without opening it: to open a device or a pipe has effects.
    fn find(&self, path: &FilePath, flags: OFlag) -> Result<(File, Metadata), Error> {
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC | flags)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
        let relative = path.relative();
        let handle = openat2(&self.0, Path::new(&relative), how);
        let handle = File::from(handle.map_err(|error| Error::of(path, error))?);
        let found = handle.metadata();
        let found = found.map_err(|error| Error::io(path, error))?;
        Ok((handle, found))
    }
}

/// Opens the very file that a handle names, whatever its path means by now.
fn reopen(handle: &File, flags: i32) -> io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(flags | libc::O_NONBLOCK)
        .open(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}
