//! Files and directories below a directory: the kernel resolves each path beneath its descriptor, and no
//! symbolic link is followed (`openat2`, Linux 5.6).

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, mkdirat};

/// Opens a directory by its path. Links above it are followed.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let file = File::open(path)?;
    if !file.metadata()?.is_dir() {
        return Err(io::Error::from(Errno::ENOTDIR));
    }
    Ok(file.into())
}

/// Opens the directory `path` below `base`, which is plain; creates what is missing.
///
/// # Errors
/// A part of the path is a link or not a directory, or the system's error.
pub(crate) fn make_directory(base: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let mut folder = base.try_clone()?;
    for component in path.components() {
        let Component::Normal(name) = component else {
            return Err(io::Error::other("the path is not plain"));
        };
        match mkdirat(&folder, name, Mode::from_bits_truncate(0o777)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
        folder = open_directory(&folder, name)?;
    }
    Ok(folder)
}

/// Opens a directory in `folder`.
pub(crate) fn open_directory(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let how = OpenHow::new().flags(flags).resolve(strict());
    Ok(openat2(folder, name, how)?)
}

/// Creates a file in `folder` that must not exist, readable by its owner.
pub(crate) fn create(folder: &OwnedFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let how = OpenHow::new()
        .flags(flags)
        .mode(Mode::from_bits_truncate(0o600))
        .resolve(strict());
    Ok(openat2(folder, name, how)?.into())
}

/// Opens a regular file in `folder`.
pub(crate) fn open_file(folder: &OwnedFd, name: &OsStr) -> io::Result<File> {
    // Without O_NONBLOCK, a named pipe would block until it has a writer.
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let how = OpenHow::new().flags(flags).resolve(strict());
    let file = File::from(openat2(folder, name, how)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

fn strict() -> ResolveFlag {
    ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS
}
