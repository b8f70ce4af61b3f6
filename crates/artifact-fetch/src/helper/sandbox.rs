//! The rights that the helper gives up before it reads anything from the network.
//!
//! It enters its folder with the agent's rights, becomes another user, and lets landlock forbid all files
//! but those of the system and its folder. Programs that it starts inherit this.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};

use crate::config::Sandbox;
use crate::wire::{Order, Work};

/// Programs and libraries: what `git` and `ssh` start and load.
const PROGRAMS: [&str; 8] = [
    "/bin", "/lib", "/lib32", "/lib64", "/nix/store", "/opt", "/sbin", "/usr",
];
/// Files of the system for names, certificates and the settings of `git` and `ssh`.
const SYSTEM: [&str; 22] = [
    "/etc/ca-certificates",
    "/etc/alternatives",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssh/ssh_config",
    "/etc/ssh/ssh_config.d",
    "/etc/ssh/ssh_known_hosts",
    "/etc/ssl",
    "/run/systemd/resolve",
    "/var/lib/ca-certificates",
];
/// Devices that programs open for reading and writing.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/urandom", "/dev/random", "/dev/zero"];
/// Memory of a helper that unpacks. Decoders of hostile archives ask for gigabytes.
const MEMORY_MAX: u64 = 4 << 30;

/// Restricts this process for good.
///
/// # Errors
/// A restriction failed: nothing may be read then.
pub(super) fn enter(order: &Order) -> Result<(), String> {
    let failed = |what: &'static str| move |error| format!("cannot {what}: {error}");
    std::env::set_current_dir(&order.folder)
        .map_err(|error| format!("cannot enter the folder of the download: {error}"))?;
    umask(Mode::from_bits_truncate(0o022));
    // A core file would hold credentials.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(failed("forbid core files"))?;
    if matches!(order.work, Work::Unpack(_)) {
        setrlimit(Resource::RLIMIT_AS, MEMORY_MAX, MEMORY_MAX).map_err(failed("limit memory"))?;
    }
    // Opened before the user changes: the folder's parents are the agent's alone.
    let folder = PathFd::new(".").map_err(|error| format!("cannot open the folder: {error}"))?;
    if let Some((uid, gid)) = order.user {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        setgroups(&[gid]).map_err(failed("leave groups"))?;
        setgid(gid).map_err(failed("change the group"))?;
        setuid(uid).map_err(failed("change the user"))?;
    }
    if order.sandbox == Sandbox::Off {
        return Ok(());
    }
    let is_enforced = restrict(order, folder).map_err(|error| format!("landlock: {error}"))?;
    if !is_enforced && order.sandbox == Sandbox::Required {
        return Err(
            "the kernel has no landlock, and `artifact.sandbox` is required: set it to auto, or use a \
             kernel 5.13 or later with landlock"
                .to_owned(),
        );
    }
    Ok(())
}

/// Returns whether the kernel enforces the rules.
fn restrict(order: &Order, folder: PathFd) -> Result<bool, landlock::RulesetError> {
    let abi = ABI::V6;
    let read = AccessFs::from_read(abi);
    let mut net: BitFlags<AccessNet> = AccessNet::BindTcp.into();
    if matches!(order.work, Work::Unpack(_) | Work::File(_)) {
        net |= AccessNet::ConnectTcp;
    }
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(net)?
        .scope(Scope::AbstractUnixSocket)?
        .create()?
        .add_rule(PathBeneath::new(folder, AccessFs::from_all(abi)))?;
    let mut allowed: Vec<(PathBuf, BitFlags<AccessFs>)> = Vec::new();
    let files = read & !AccessFs::Execute;
    let paths = order.read_paths.iter().cloned();
    allowed.extend(paths.map(|path| (path, files)));
    if let Work::File(file) = &order.work {
        allowed.push((file.path.clone(), files));
    }
    if let Work::Git(git) = &order.work {
        if let Some(path) = git.url.strip_prefix("file://") {
            allowed.push((path.into(), files));
        }
    }
    if !matches!(order.work, Work::Unpack(_) | Work::File(_)) {
        allowed.extend(PROGRAMS.map(|path| (path.into(), read)));
        allowed.extend(SYSTEM.map(|path| (path.into(), files)));
        let device = AccessFs::ReadFile | AccessFs::WriteFile;
        allowed.extend(DEVICES.map(|path| (path.into(), device)));
    }
    for (path, access) in allowed {
        // A path that does not exist needs no rule.
        let Ok(opened) = PathFd::new(&path) else {
            continue;
        };
        let access = if is_directory(&path) {
            access
        } else {
            access & AccessFs::from_file(abi)
        };
        rules = rules.add_rule(PathBeneath::new(opened, access))?;
    }
    let status = rules.restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

fn is_directory(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_dir())
}
