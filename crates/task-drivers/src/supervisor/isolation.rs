//! Isolation of a task of the driver `exec`: its process starts in namespaces of its own, on a root
//! that is the task's directory.
//!
//! In reading order: [`root`] builds the root from mounts, [`mounts`] has the kernel's calls for
//! that, [`privileges`] are what the process gives up before its program runs, [`seccomp`] is the
//! filter of its system calls; [`enter`] starts a command in the same namespaces, with the same rights.
//!
//! Every mount is made in the task's mount namespace. The kernel removes all of them with the last
//! process of the task, so neither a killed supervisor nor a killed agent leaves one behind.

pub(super) mod enter;
mod failure;
mod mounts;
mod privileges;
mod root;
mod seccomp;

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use self::failure::because;
use self::privileges::Privileges;
use super::files::{Isolation, StartRequest};

/// Directories of programs inside the task's root. Source: Nomad's public behaviour.
const SEARCHED: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Starts the program of `request` in namespaces of its own. `command` makes the command for the
/// program's path inside, `spawn` starts it.
///
/// # Errors
/// The step that failed.
pub(super) fn start(
    request: &StartRequest,
    isolation: &Isolation,
    command: impl FnOnce(&Path) -> io::Result<Command> + Send,
    spawn: impl FnOnce(&mut Command) -> io::Result<Child> + Send,
) -> io::Result<Child> {
    thread::scope(|scope| {
        // The thread alone moves; the supervisor stays in the host's namespaces.
        let starting = scope.spawn(|| {
            enter(request, isolation)?;
            let mut command = command(&find_program(&request.command)?)?;
            let privileges = Privileges::new(request, isolation)?;
            let (mut failure, report) = io::pipe()?;
            let drop_privileges = move || privileges.apply(&report);
            #[expect(unsafe_code, reason = "code between fork and exec is unsafe")]
            // SAFETY: it makes system calls alone, and allocates nothing.
            unsafe {
                command.pre_exec(drop_privileges)
            };
            let spawned = spawn(&mut command);
            // Closes the write end, so that the read ends.
            drop(command);
            spawned.map_err(|error| privileges::name(&mut failure, error))
        });
        starting
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves the thread into the task's namespaces and root. The process that it starts next is the first
/// of its pid namespace.
fn enter(request: &StartRequest, isolation: &Isolation) -> io::Result<()> {
    if let Some(network) = &request.network {
        File::open(&network.namespace)
            .and_then(|namespace| Ok(setns(namespace, CloneFlags::CLONE_NEWNET)?))
            .map_err(|error| because("cannot enter the allocation's network", &error))?;
    }
    let mut flags = CloneFlags::CLONE_NEWNS;
    flags.set(CloneFlags::CLONE_NEWIPC, isolation.own_ipc);
    unshare(flags).map_err(|error| because("cannot make namespaces", &error.into()))?;
    root::build(isolation, request.network.as_ref())?;
    if isolation.own_pids {
        unshare(CloneFlags::CLONE_NEWPID)
            .map_err(|error| because("cannot make a pid namespace", &error.into()))?;
    }
    Ok(())
}

/// Looks the program up inside the root: in `/local`, in the task's directory, as an absolute path, in
/// [`SEARCHED`]. A file of the task is made executable.
fn find_program(command: &Path) -> io::Result<PathBuf> {
    let name = command.strip_prefix("/").unwrap_or(command);
    for own in [Path::new("/local").join(name), Path::new("/").join(name)] {
        // A link is not followed: its target may be any file that the task sees.
        let found = fs::symlink_metadata(&own).ok();
        if let Some(found) = found.filter(fs::Metadata::is_file) {
            if found.permissions().mode() & 0o111 == 0 {
                // Fails on the node's own files, which are read-only: the start names the reason.
                let _ = fs::set_permissions(&own, fs::Permissions::from_mode(0o755));
            }
            return Ok(own);
        }
    }
    if command.is_absolute() {
        return Ok(command.to_owned());
    }
    let found = SEARCHED
        .iter()
        .map(|directory| Path::new(directory).join(command))
        .find(|path| path.is_file());
    found.ok_or_else(|| {
        let text = format!(
            "it is neither in the task's directory nor in {}",
            SEARCHED.join(":")
        );
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// Returns a read-only mount of a file, which no path leads to.
pub(super) fn read_only_mount(path: &CStr) -> io::Result<OwnedFd> {
    mounts::read_only(path)
}

/// Tries to make the namespaces of a task, on a thread that ends at once.
///
/// # Errors
/// A facility that the machine lacks.
pub(crate) fn probe() -> Result<(), String> {
    let tried = thread::spawn(|| {
        mounts::read_only(c"/proc/self/exe")
            .map_err(|error| format!("the agent's program has no read-only mount: {error}"))?;
        let all = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWPID;
        unshare(all).map_err(|error| format!("the agent may not make namespaces: {error}"))?;
        mounts::probe().map_err(|error| {
            format!("the kernel cannot make mounts read-only as a whole (Linux 5.12): {error}")
        })
    });
    tried
        .join()
        .unwrap_or_else(|_| Err("the probe of namespaces panicked".to_owned()))
}
