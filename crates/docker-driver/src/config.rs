//! Settings of the drivers: the sections `[drivers.docker]` and `[drivers.podman]` of a node's
//! configuration file, which differ in their defaults.
//!
//! An agent prints the sections with the doc comments of [`SOURCE`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use service_kit::config::{duration, list};
use task_drivers::DEFAULT_CAPS;

/// The source of the section, for a configuration file that explains itself.
pub const SOURCE: &str = include_str!("config.rs");

/// Namespaces of the host that a task may join by default. Source: Nomad's public default.
pub const DEFAULT_HOST_MODES: [&str; 4] = ["ipc", "pid", "userns", "uts"];

/// Containers of an engine. The driver is available where the engine's socket answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// Enable the driver.
    pub enabled: bool,
    /// The engine's socket file.
    pub socket: PathBuf,
    /// Allow `privileged` containers, which have every right on the machine.
    pub allow_privileged: bool,
    /// Capabilities that tasks have, or may add; `all`: every one. Source: Nomad's default, as are the
    /// others of this section.
    #[serde(with = "list")]
    pub allow_caps: Vec<String>,
    /// Container runtimes that tasks of this driver may name.
    #[serde(with = "list")]
    pub allow_runtimes: Vec<String>,
    /// Namespaces of the machine that tasks may join: `ipc`, `pid`, `userns`, `uts`.
    #[serde(with = "list")]
    pub allow_host_modes: Vec<String>,
    /// Allow tasks to mount every path of the machine, and to use volume drivers.
    pub volumes: bool,
    /// Maximum number of processes of a container; 0: no limit.
    pub pids_limit: u32,
    /// Facts that become labels of every container, as patterns over `job_id`, `job_name`,
    /// `task_group_name`, `task_name`, `namespace`, `node_id` and `node_name`.
    #[serde(with = "list")]
    pub extra_labels: Vec<String>,
    /// Log driver of containers without a `logging` block.
    pub log_driver: String,
    /// Options of `log_driver`. They bound the output that waits for the agent, and its space on disk.
    pub log_options: BTreeMap<String, String>,
    /// Image of the containers that own the network of an allocation; empty: a built-in one, which needs
    /// no registry.
    pub infra_image: String,
    /// Timeout of an image's pull; a task's own takes precedence.
    #[serde(with = "duration")]
    pub image_pull_timeout: Duration,
    /// Timeout of a pull without progress.
    #[serde(with = "duration")]
    pub pull_activity_timeout: Duration,
    /// File with registry credentials, as `~/.docker/config.json`.
    pub auth_config: Option<PathBuf>,
    /// Credential helper: the program `docker-credential-<name>`; empty: none.
    pub auth_helper: String,
    /// Remove images that the agent pulled once no container uses them. Images that were on the node before stay.
    pub remove_images: bool,
    /// Time without a container after which `remove_images` removes an image, at the next fingerprint.
    #[serde(with = "duration")]
    pub image_delay: Duration,
    /// Remove containers of this node that no record names.
    pub remove_dangling: bool,
    /// Age from which `remove_dangling` removes them.
    #[serde(with = "duration")]
    pub dangling_grace: Duration,
}

impl Default for EngineConfig {
    /// Source of the defaults: Nomad's public ones, but for the size of logs.
    fn default() -> Self {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        // Larger than Nomad's 2 MB: a busy task writes that in seconds, before the agent has read it.
        let log_options = [("max-file", "2"), ("max-size", "10m")];
        Self {
            enabled: true,
            socket: PathBuf::from("/var/run/docker.sock"),
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
            infra_image: String::new(),
            image_pull_timeout: Duration::from_secs(300),
            pull_activity_timeout: Duration::from_secs(120),
            auth_config: None,
            auth_helper: String::new(),
            remove_images: true,
            image_delay: Duration::from_secs(180),
            remove_dangling: true,
            dangling_grace: Duration::from_secs(300),
        }
    }
}

impl EngineConfig {
    /// Returns the defaults of the driver `podman`. Those that allow something are docker's.
    pub fn podman() -> Self {
        Self {
            socket: PathBuf::from("/run/podman/podman.sock"),
            log_driver: "k8s-file".to_owned(),
            log_options: [("max-size".to_owned(), "4m".to_owned())].into(),
            ..Self::default()
        }
    }

    /// Refuses settings with which no image could be pulled.
    ///
    /// # Errors
    /// The first setting that is wrong, below `drivers.docker`, and its problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        for (field, timeout) in [
            ("image_pull_timeout", self.image_pull_timeout),
            ("pull_activity_timeout", self.pull_activity_timeout),
        ] {
            if timeout.is_zero() {
                let problem = "is 0s: every pull would fail at once; want a duration, as in 1m";
                return Err((field, problem.to_owned()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_with_which_no_image_could_be_pulled_are_refused() {
        assert_eq!(EngineConfig::default().check(), Ok(()));
        let config = EngineConfig {
            pull_activity_timeout: Duration::ZERO,
            ..EngineConfig::default()
        };
        assert_eq!(config.check().unwrap_err().0, "pull_activity_timeout");
    }
}
