//! Settings of the driver: the section `[drivers.exec]` of a node's configuration file.
//!
//! An agent prints the section with the doc comments of [`SOURCE`].

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use model::capability;
use serde::{Deserialize, Serialize};

/// The source of the section, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("settings.rs");

/// Capabilities that tasks get, or may add, by default, of this driver and of docker: those of Docker's engine
/// without `NET_RAW`. Source: Nomad's public default.
pub const DEFAULT_CAPS: [&str; 13] = [
    "audit_write",
    "chown",
    "dac_override",
    "fowner",
    "fsetid",
    "kill",
    "mknod",
    "net_bind_service",
    "setfcap",
    "setgid",
    "setpcap",
    "setuid",
    "sys_chroot",
];

/// Directories of a task that are not the host's.
const OWN: [&str; 7] = ["alloc", "local", "secrets", "tmp", "dev", "proc", "sys"];

/// The host's paths that a task sees by default. Source: Nomad's public default.
const CHROOT_ENV: [&str; 9] = [
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/sbin",
    "/usr",
];

/// Processes in namespaces of their own, with the node's programs. The driver needs root and cgroup
/// version 2 with the controllers `cpu` and `memory`; a node without them does not have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecConfig {
    /// Enable the driver.
    pub enabled: bool,
    /// Start tasks without control groups that limit them, too. Their memory and cpu are then
    /// reserved, not limited.
    pub without_limits: bool,
    /// Path on the node → path in the task, read-only. It replaces the default: `/bin`, `/etc`,
    /// `/lib`, `/lib32`, `/lib64`, `/run/resolvconf`, `/run/systemd/resolve`, `/sbin` and `/usr`.
    pub chroot_env: BTreeMap<String, String>,
    /// Capabilities that tasks have, or may add; `all`: every one. Source: Nomad's default, as are
    /// the next two.
    pub allow_caps: Vec<String>,
    /// `private`, or `host`: tasks that do not set `pid_mode` see and signal the node's processes.
    pub default_pid_mode: String,
    /// `private`, or `host`: tasks that do not set `ipc_mode` share memory and queues with the node's
    /// processes.
    pub default_ipc_mode: String,
    /// Refuse system calls that administer the machine.
    pub seccomp: bool,
}

impl Default for ExecConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            without_limits: false,
            chroot_env: BTreeMap::new(),
            allow_caps: DEFAULT_CAPS.map(str::to_owned).to_vec(),
            default_pid_mode: "private".to_owned(),
            default_ipc_mode: "private".to_owned(),
            seccomp: true,
        }
    }
}

impl ExecConfig {
    /// # Errors
    /// The name of the first wrong setting, below `drivers.exec`, and the problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        for (field, mode) in [
            ("default_pid_mode", &self.default_pid_mode),
            ("default_ipc_mode", &self.default_ipc_mode),
        ] {
            if !["private", "host"].contains(&mode.as_str()) {
                let problem = format!("is {mode:?}: want \"private\" or \"host\"");
                return Err((field, problem));
            }
        }
        for name in &self.allow_caps {
            if name != "all" && capability::number(name).is_none() {
                let problem = format!("has {name:?}, which is not a capability of Linux");
                return Err(("allow_caps", problem));
            }
        }
        for (source, target) in &self.chroot_env {
            if let Some(problem) = wrong_path(source).or_else(|| wrong_path(target)) {
                return Err(("chroot_env", format!("{source:?} = {target:?}: {problem}")));
            }
            let first = Path::new(target).components().nth(1);
            let first = first.map(Component::as_os_str);
            if first.is_none_or(|first| OWN.iter().any(|own| first == *own)) {
                let problem = format!("{target:?} is the task's own, want another directory");
                return Err(("chroot_env", problem));
            }
        }
        Ok(())
    }

    /// Returns path in the task → path of the host.
    pub(super) fn host_paths(&self) -> BTreeMap<PathBuf, PathBuf> {
        if self.chroot_env.is_empty() {
            return CHROOT_ENV.map(|path| (path.into(), path.into())).into();
        }
        let own = self.chroot_env.iter();
        own.map(|(source, target)| (target.into(), source.into()))
            .collect()
    }
}

/// Returns the problem of a path that is not absolute and plain.
pub(crate) fn wrong_path(path: &str) -> Option<&'static str> {
    let mut parts = Path::new(path).components();
    if parts.next() != Some(Component::RootDir) {
        return Some("want absolute paths");
    }
    let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
    (!is_plain || path.contains('\0')).then_some("want paths without \"..\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_named() {
        assert_eq!(ExecConfig::default().check(), Ok(()));
        let wrong = |edit: fn(&mut ExecConfig)| {
            let mut config = ExecConfig::default();
            edit(&mut config);
            config.check().unwrap_err().0
        };
        let pid = wrong(|config| config.default_pid_mode = "shared".into());
        assert_eq!(pid, "default_pid_mode");
        let caps = wrong(|config| config.allow_caps.push("fly".into()));
        assert_eq!(caps, "allow_caps");
        for target in ["usr", "/", "/../x", "/proc", "/alloc/x", "/dev/x"] {
            let mut config = ExecConfig::default();
            let paths = [("/usr".to_owned(), target.to_owned())];
            config.chroot_env = paths.into();
            assert_eq!(config.check().unwrap_err().0, "chroot_env", "{target}");
        }
    }

    #[test]
    fn own_paths_replace_the_default() {
        let mut config = ExecConfig::default();
        assert!(config.host_paths().contains_key(Path::new("/usr")));
        config.chroot_env.insert("/opt/image".into(), "/usr".into());
        let paths = [("/usr".into(), "/opt/image".into())];
        assert_eq!(config.host_paths(), paths.into());
    }
}
