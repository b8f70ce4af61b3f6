//! Settings of the driver: the node operator's part.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The driver's name in jobs.
pub const NAME: &str = "docker";

/// Capabilities that tasks get, or may add, by default: those of the engine without `NET_RAW`.
/// Source: Nomad's public default.
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

/// Namespaces of the host that a task may join by default. Source: Nomad's public default.
pub const DEFAULT_HOST_MODES: [&str; 4] = ["ipc", "pid", "userns", "uts"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub enabled: bool,
    /// The engine's socket file.
    pub socket: PathBuf,
    /// Directory of the attempts' records; private to the agent.
    pub state_dir: PathBuf,
    /// The node's id and name, for labels.
    pub node_id: String,
    pub node_name: String,
    pub allow_privileged: bool,
    /// Capabilities that a task may have, in any case and with or without `CAP_`; `all`: every one.
    pub allow_caps: Vec<String>,
    pub allow_runtimes: Vec<String>,
    /// Namespaces of the host that a task may join: `ipc`, `pid`, `userns`, `uts`.
    pub allow_host_modes: Vec<String>,
    /// Tasks may mount any path of the host, and use volume drivers.
    pub volumes: bool,
    /// Most processes of a container; 0: no limit.
    pub pids_limit: u32,
    /// Facts that become labels of every container, as patterns: `job_*`.
    pub extra_labels: Vec<String>,
    /// Log driver of the engine for containers without a `logging` block, and its options.
    pub log_driver: String,
    pub log_options: BTreeMap<String, String>,
    /// Timeout of a pull.
    pub image_pull_timeout: Duration,
    /// Timeout of a pull without progress.
    pub pull_activity_timeout: Duration,
    /// A file as `~/.docker/config.json`, with registry credentials.
    pub auth_config: Option<PathBuf>,
    /// Credential helper `docker-credential-<name>`; empty: none.
    pub auth_helper: String,
    /// Age from which a container of this node without a record is removed; `None`: never.
    pub dangling_grace: Option<Duration>,
}

impl Settings {
    /// Source of the defaults: Nomad's public ones.
    pub fn new(state_dir: PathBuf, node_id: String) -> Self {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let log_options = [("max-file", "2"), ("max-size", "2m")];
        Self {
            enabled: true,
            socket: PathBuf::from("/var/run/docker.sock"),
            state_dir,
            node_name: String::new(),
            node_id,
            allow_privileged: false,
            allow_caps: texts(&DEFAULT_CAPS),
            allow_runtimes: texts(&["runc", "nvidia"]),
            allow_host_modes: texts(&DEFAULT_HOST_MODES),
            volumes: false,
            pids_limit: 0,
            extra_labels: Vec::new(),
            log_driver: "json-file".to_owned(),
            log_options: log_options
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            image_pull_timeout: Duration::from_secs(300),
            pull_activity_timeout: Duration::from_secs(120),
            auth_config: None,
            auth_helper: String::new(),
            dangling_grace: Some(Duration::from_secs(300)),
        }
    }
}
