//! The agent's program within reach of isolated tasks: a supervisor runs it from a read-only mount.
//!
//! Until it runs its own program, a process of a task is a copy of the supervisor, and a script may name
//! that program as its interpreter (`#!/proc/self/exe`). Through `/proc/<pid>/exe` the task can then hold the
//! file open, and as root write to it once no process runs it. A file of a read-only mount cannot be opened
//! for writing, whatever the rights.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sys::statvfs::{FsFlags, statvfs};

use super::isolation;

const OWN: &std::ffi::CStr = c"/proc/self/exe";
/// Set in the environment of the second run, which does not try again.
const IS_AGAIN: &str = "KAFILA_FROM_READ_ONLY_MOUNT";

/// Runs the program again, with the same arguments and files, from a mount that is read-only. Returns in the
/// second run, and if the mount is read-only already.
///
/// # Errors
/// The kernel does not make such a mount.
pub(super) fn run_read_only() -> io::Result<()> {
    let is_read_only = statvfs(OWN).is_ok_and(|found| found.flags().contains(FsFlags::ST_RDONLY));
    if is_read_only || std::env::var_os(IS_AGAIN).is_some() {
        return Ok(());
    }
    let Err(error) = run_again();
    Err(error)
}

fn run_again() -> io::Result<std::convert::Infallible> {
    let mount = isolation::read_only_mount(OWN)?;
    let mut args = std::env::args_os();
    let mut command = Command::new(format!("/proc/self/fd/{}", mount.as_raw_fd()));
    if let Some(name) = args.next() {
        command.arg0(name);
    }
    Err(command.args(args).env(IS_AGAIN, "1").exec())
}
