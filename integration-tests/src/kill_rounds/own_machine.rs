//! A machine of its own for a run: namespaces of processes, mounts and networks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::groups;

/// The directory of the run; set in its own namespaces.
const INSIDE: &str = "KAFILA_KILL_ROUNDS_DIR";

/// The first process of the namespace: it reaps orphans, as the shell does while it waits.
const FIRST: &str = "ip link set lo up && \"$0\" \"$@\"; exit $?";

/// Returns what this machine lacks; `None` if runs are possible.
pub fn missing() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("not root".to_owned());
    }
    let programs = [
        "unshare", "ip", "nft", "flock", "dockerd", "docker", "tar", "ldd",
    ];
    for program in programs {
        let found = Command::new("which").arg(program).output();
        if !found.is_ok_and(|found| found.status.success()) {
            return Some(format!("no program {program}"));
        }
    }
    None
}

/// Returns the directory of the run, if this is a process inside.
pub fn directory() -> Option<PathBuf> {
    std::env::var_os(INSIDE).map(PathBuf::from)
}

/// Runs this program again in namespaces of its own, with a directory. At its end, the kernel kills all of its
/// processes; the directory and the control groups of its name are removed.
///
/// # Errors
/// It cannot be started, or failed.
pub fn run_inside(keeps: bool) -> Result<()> {
    let mut directory = tempfile::Builder::new()
        .prefix("kafila-rounds-")
        .tempdir()?;
    // Tasks of other users pass it.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711))?;
    if keeps {
        directory.disable_cleanup(true);
        println!("logs and data: {}", directory.path().display());
    }
    let mut command = Command::new("unshare");
    command
        .args([
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
        ])
        .args(["sh", "-c", FIRST])
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, directory.path());
    let status = command.status().context("cannot start unshare")?;
    groups::remove(&groups_of(directory.path()));
    ensure!(status.success(), "the run failed");
    Ok(())
}

/// Returns the parents of the control groups of a run: of its node and of its engine. Namespaces of control groups
/// are the machine's, so the names are the run's own.
pub fn groups_of(directory: &Path) -> Vec<String> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    vec![format!("{name}-node"), format!("{name}-engine")]
}
