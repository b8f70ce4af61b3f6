//! The root of a task: its own directory, with the node's programs mounted read-only.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root, symlinkat};

use super::failure::because;
use super::mounts::{NO_DEVICES, READ_ONLY, Root, Target, restrict};
use crate::driver::TaskNetwork;
use crate::supervisor::files::Isolation;

/// Device files of the node that every task has. Source: Nomad's public behaviour.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Builds the root in the calling thread's mount namespace, which must be its own, and moves the
/// thread there. `/proc` is left to a process of the task's pid namespace.
///
/// # Errors
/// The mount that failed.
pub(super) fn build(isolation: &Isolation, network: Option<&TaskNetwork>) -> io::Result<()> {
    let none = None::<&str>;
    let failed = |path: &Path| {
        let what = format!("cannot mount {}", path.display());
        move |error: io::Error| because(&what, &error)
    };
    // Mounts of the task do not leave its namespace.
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
    let directory = isolation.root.as_path();
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(directory), directory, none, flags, none)
        .map_err(|error| failed(directory)(error.into()))?;
    let root = Root::open(directory)?;
    restrict(root.fd(), NO_DEVICES).map_err(failed(directory))?;

    // By path, so parents come before what is below them.
    for (target, source) in &isolation.host {
        host_path(&root, source, target).map_err(failed(target))?;
    }
    let shared = Path::new("/alloc");
    root.bind(&isolation.shared, shared, Target::Directory, NO_DEVICES)
        .map_err(failed(shared))?;
    let logs = Path::new("/alloc/logs");
    root.bind(&isolation.logs, logs, Target::Directory, READ_ONLY)
        .map_err(failed(logs))?;
    devices(&root, &isolation.devices).map_err(|error| because("cannot mount /dev", &error))?;
    system(&root).map_err(|error| because("cannot mount /sys", &error))?;
    root.make_directory(Path::new("/proc"))
        .map_err(failed(Path::new("/proc")))?;
    for volume in &isolation.volumes {
        let attributes = if volume.read_only {
            READ_ONLY
        } else {
            NO_DEVICES
        };
        root.bind(
            &volume.source,
            &volume.destination,
            Target::Directory,
            attributes,
        )
        .map_err(failed(&volume.destination))?;
    }
    if let Some(network) = network {
        for (source, target) in [
            (&network.hosts, "/etc/hosts"),
            (&network.resolv_conf, "/etc/resolv.conf"),
        ] {
            let target = Path::new(target);
            root.cover(source, target).map_err(failed(target))?;
        }
    }
    change_root(&root).map_err(|error| because("cannot change the root", &error))
}

/// Gives the task a path of the host: a link as the same link, a directory or a file as a mount.
fn host_path(root: &Root, source: &Path, target: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(source) {
        // Distributions have some of the paths only.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?.file_type(),
    };
    if found.is_symlink() {
        return host_link(root, source, target);
    }
    if found.is_dir() {
        return root.bind(source, target, Target::Directory, READ_ONLY);
    }
    if found.is_socket() || found.is_fifo() || found.is_block_device() || found.is_char_device() {
        return Err(io::Error::other("it is neither a directory nor a file"));
    }
    root.bind(source, target, Target::File, READ_ONLY)
}

fn host_link(root: &Root, source: &Path, target: &Path) -> io::Result<()> {
    let link = fs::read_link(source)?;
    let parent = target.parent().unwrap_or(Path::new("/"));
    root.make_directory(parent)?;
    let directory = root.find(parent)?;
    let name = target.file_name().unwrap_or_default();
    match symlinkat(&link, directory.as_fd(), name) {
        Err(nix::Error::EEXIST) => {}
        result => return Ok(result?),
    }
    // An earlier attempt made the link, or the task has a directory of this name.
    match nix::fcntl::readlinkat(directory.as_fd(), name) {
        Ok(existing) if link.as_os_str() == existing => Ok(()),
        Ok(_) => Err(io::Error::other("a link of the task is in its place")),
        Err(_) => {
            let real: PathBuf = fs::canonicalize(source)?;
            root.bind(&real, target, Target::Directory, READ_ONLY)
        }
    }
}

/// Makes `/dev`. Its own file system allows no devices, so a node that a task makes is of no use; each
/// of [`DEVICES`] and `further` is a mount of the host's file.
fn devices(root: &Root, further: &[PathBuf]) -> io::Result<()> {
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let dev = Path::new("/dev");
    root.mount(
        c"tmpfs",
        dev,
        plain | MsFlags::MS_NODEV,
        "mode=755,size=64k",
    )?;
    let usual = DEVICES.map(|name| Path::new("/dev").join(name));
    for source in usual.iter().chain(further) {
        if source.exists() {
            root.bind(source, source, Target::File, 0)?;
        }
    }
    let options = "newinstance,ptmxmode=0666,mode=0620,gid=5";
    root.mount(c"devpts", &dev.join("pts"), plain, options)?;
    let plain = plain | MsFlags::MS_NODEV;
    root.mount(c"tmpfs", &dev.join("shm"), plain, "mode=1777,size=64m")?;
    match root.mount(c"mqueue", &dev.join("mqueue"), plain, "") {
        // A kernel without message queues.
        Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => {}
        result => result?,
    }
    let directory = root.find(dev)?;
    for (link, name) in DEVICE_LINKS {
        symlinkat(link, directory.as_fd(), name)?;
    }
    Ok(())
}

/// Mounts `/sys` read-only, of the task's network namespace, without the machine's firmware.
fn system(root: &Root) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
    let sys = Path::new("/sys");
    root.mount(c"sysfs", sys, flags, "")?;
    let firmware = sys.join("firmware");
    if root.find(&firmware).is_ok() {
        root.mount(c"tmpfs", &firmware, flags, "size=0,nr_inodes=1")?;
    }
    Ok(())
}

/// Makes `root` the root of the namespace and unmounts all of the host's.
fn change_root(root: &Root) -> io::Result<()> {
    let none = None::<&str>;
    nix::unistd::fchdir(root.fd())?;
    // The old root lies over the new one, and is unmounted there.
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    // Later mounts of the host do not appear in the task.
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    Ok(())
}
