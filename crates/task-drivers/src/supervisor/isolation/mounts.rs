//! Mounts below a directory that a task may have written to.
//!
//! A path is resolved below the root, never through the host's: a link that a task left in its
//! directory must not lead a mount, or a new directory, out of it.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, mkdirat};

/// Set on a mount and all mounts below it.
pub(super) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
pub(super) const READ_ONLY: u64 = NO_DEVICES | libc::MOUNT_ATTR_RDONLY;

/// A directory as the root of paths.
pub(super) struct Root(OwnedFd);

/// The kind of a mount's target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Directory,
    File,
}

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let how = OpenHow::new().flags(flags);
        Ok(Self(openat2(nix::fcntl::AT_FDCWD, path, how)?))
    }

    pub(super) fn fd(&self) -> impl AsFd + '_ {
        self.0.as_fd()
    }

    /// Opens `path`, absolute inside the root; links are an error.
    pub(super) fn find(&self, path: &Path) -> nix::Result<OwnedFd> {
        let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
        self.resolve(path, resolve)
    }

    /// Opens `path`, absolute inside the root; links lead to files inside the root.
    pub(super) fn follow(&self, path: &Path) -> nix::Result<OwnedFd> {
        let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        self.resolve(path, resolve)
    }

    fn resolve(&self, path: &Path, resolve: ResolveFlag) -> nix::Result<OwnedFd> {
        let path = path.strip_prefix("/").unwrap_or(path);
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC);
        openat2(self.0.as_fd(), path, how.resolve(resolve))
    }

    /// Makes the missing directories of `path`.
    pub(super) fn make_directory(&self, path: &Path) -> io::Result<()> {
        let mut made = PathBuf::from("/");
        for part in path.components() {
            let name = match part {
                Component::RootDir | Component::CurDir => continue,
                Component::Normal(name) => name,
                _ => return Err(io::Error::other("has a part \"..\"")),
            };
            let parent = self.find(&made)?;
            made.push(name);
            match mkdirat(&parent, name, Mode::from_bits_truncate(0o755)) {
                // A read-only file system may have the directory.
                Err(error) if error != Errno::EEXIST && self.find(&made).is_err() => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the missing file `path`, in a directory that exists.
    pub(super) fn make_file(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        self.make_directory(parent)?;
        if self.find(path).is_ok() {
            return Ok(());
        }
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let name = path.file_name().unwrap_or_default();
        let mode = Mode::from_bits_truncate(0o644);
        openat(self.find(parent)?, name, flags, mode)?;
        Ok(())
    }

    /// Mounts `source` of the host, with all mounts below it, at `target`.
    pub(super) fn bind(
        &self,
        source: &Path,
        target: &Path,
        kind: Target,
        attributes: u64,
    ) -> io::Result<()> {
        match kind {
            Target::Directory => self.make_directory(target)?,
            Target::File => self.make_file(target)?,
        }
        bind_to(source, self.find(target)?.as_fd())?;
        restrict(self.find(target)?.as_fd(), attributes)
    }

    /// Mounts `source` over the existing file `target`, which links may lead to. Without the file
    /// there is nothing to mount over.
    pub(super) fn cover(&self, source: &Path, target: &Path) -> io::Result<()> {
        let Ok(found) = self.follow(target) else {
            return Ok(());
        };
        bind_to(source, found.as_fd())?;
        restrict(self.follow(target)?.as_fd(), READ_ONLY)
    }

    /// Mounts a new file system of the kind `kind` at `target`.
    pub(super) fn mount(
        &self,
        kind: &CStr,
        target: &Path,
        flags: MsFlags,
        options: &str,
    ) -> io::Result<()> {
        self.make_directory(target)?;
        let at = self.find(target)?;
        Ok(mount(
            Some(kind),
            &through(at.as_fd()),
            Some(kind),
            flags,
            Some(options),
        )?)
    }
}

fn bind_to(source: &Path, target: impl AsFd) -> io::Result<()> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    let none = None::<&str>;
    Ok(mount(Some(source), &through(target), none, flags, none)?)
}

/// Names an open file for calls that take a path.
fn through(file: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

/// Sets the attributes of the mount `at` and of every mount below it.
pub(super) fn restrict(at: impl AsFd, attributes: u64) -> io::Result<()> {
    if attributes == 0 {
        return Ok(());
    }
    let wanted = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: the path ends in a zero, and the structure is as long as it says.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    Errno::result(result).map(drop).map_err(io::Error::from)
}

/// Sets an attribute on the root of the calling thread's mount namespace, which must be its own.
pub(super) fn probe() -> io::Result<()> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
    let root = Root::open(Path::new("/"))?;
    restrict(root.fd(), libc::MOUNT_ATTR_NOSUID)
}

/// Returns a read-only mount of a file of the calling thread's mount namespace, which no path leads to.
pub(super) fn read_only(path: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC;
    #[expect(unsafe_code, reason = "no library has this system call")]
    // SAFETY: the path ends in a zero.
    let opened =
        unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
    let number = i32::try_from(Errno::result(opened)?).map_err(io::Error::other)?;
    #[expect(unsafe_code, reason = "the kernel returns a number")]
    // SAFETY: the number is of a file that was opened just now, and has no other owner.
    let mount = unsafe { OwnedFd::from_raw_fd(number) };
    restrict(&mount, libc::MOUNT_ATTR_RDONLY)?;
    Ok(mount)
}
