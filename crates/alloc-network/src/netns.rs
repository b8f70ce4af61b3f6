//! Network namespaces: made or taken from a process, and pinned by a bind mount until they are removed.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statfs::{NSFS_MAGIC, statfs};

use crate::error::Error;

/// Pins a new namespace at `path`, with its loopback interface up.
pub(crate) fn create(path: &Path) -> Result<(), Error> {
    let path = path.to_owned();
    // The namespace is the thread's, and must not become another task's.
    on_thread(move || {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| failed("cannot leave the host's", error))?;
        loopback_up().map_err(|source| Error::Namespace {
            what: "its loopback interface does not start",
            source,
        })?;
        pin(Path::new("/proc/thread-self/ns/net"), &path)
    })
}

/// Pins the namespace of a process at `path`.
pub(crate) fn adopt(pid: i32, path: &Path) -> Result<(), Error> {
    pin(Path::new(&format!("/proc/{pid}/ns/net")), path)
}

/// Tells whether `path` pins a namespace, and with a `pid` whether it is that of the process.
pub(crate) fn is_pinned(path: &Path, pid: Option<i32>) -> bool {
    let is_namespace = statfs(path).is_ok_and(|found| found.filesystem_type() == NSFS_MAGIC);
    let inode = |path: &Path| fs::metadata(path).map(|found| found.ino()).ok();
    is_namespace
        && pid.is_none_or(|pid| inode(path) == inode(Path::new(&format!("/proc/{pid}/ns/net"))))
}

/// Removes a pin. The namespace ends with its last process.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    while is_pinned(path, None) {
        umount2(path, MntFlags::MNT_DETACH)
            .map_err(|error| failed("its pin cannot be removed", error))?;
    }
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Path {
            what: "cannot remove",
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

/// Tells whether the agent may make namespaces.
pub(crate) fn problem() -> Option<String> {
    let made = on_thread(|| {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| failed("cannot leave the host's", error))?;
        Ok(())
    });
    made.err()
        .map(|_| "the agent may not make network namespaces: it has to run as root".to_owned())
}

fn pin(namespace: &Path, path: &Path) -> Result<(), Error> {
    let at = |source| Error::Path {
        what: "cannot pin the namespace at",
        path: path.to_owned(),
        source,
    };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(at)?;
    }
    File::create(path).map_err(at)?;
    let none = None::<&str>;
    mount(Some(namespace), path, none, MsFlags::MS_BIND, none).map_err(|error| at(error.into()))
}

fn failed(what: &'static str, error: nix::Error) -> Error {
    Error::Namespace {
        what,
        source: error.into(),
    }
}

fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let thread = thread::Builder::new().name("netns".to_owned()).spawn(work);
    let ended = thread.map(thread::JoinHandle::join);
    match ended {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(source) => Err(Error::Namespace {
            what: "no thread",
            source,
        }),
    }
}

/// Starts the loopback interface of the thread's namespace.
fn loopback_up() -> io::Result<()> {
    use nix::libc;
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: all zeros is a valid `ifreq`.
    #[expect(unsafe_code, reason = "a C struct without a constructor")]
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
        *to = from.cast_signed();
    }
    let up = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
    request.ifr_ifru.ifru_flags = up;
    #[expect(
        unsafe_code,
        reason = "no library of the workspace starts an interface"
    )]
    // SAFETY: the descriptor is open, and the kernel reads the struct alone.
    let result = unsafe {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the type of requests is c_ulong with glibc and c_int with musl"
        )]
        let set_flags = libc::SIOCSIFFLAGS as libc::Ioctl;
        libc::ioctl(socket.as_raw_fd(), set_flags, &raw const request)
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
