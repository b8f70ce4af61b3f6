//! Facts that the driver starts with: the operator's settings and the node.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::EngineConfig;

/// The program behind the socket; each has a driver of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    Docker,
    /// It serves the API of Docker's engine, with other defaults.
    Podman,
}

impl EngineKind {
    /// Returns the driver's name in jobs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// Returns the name for messages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
        }
    }

    /// Returns the engine's own network, which no other machine reaches.
    pub(crate) fn own_network(self) -> &'static str {
        match self {
            Self::Docker => "bridge",
            Self::Podman => "podman",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub engine_kind: EngineKind,
    pub config: EngineConfig,
    /// Directory of the attempts' records; private to the agent.
    pub state_dir: PathBuf,
    /// The node's id and name, for labels.
    pub node_id: String,
    pub node_name: String,
}

impl Settings {
    /// Returns settings of a Docker Engine, with the defaults of the operator's part.
    pub fn new(state_dir: PathBuf, node_id: String) -> Self {
        Self {
            engine_kind: EngineKind::Docker,
            config: EngineConfig::default(),
            state_dir,
            node_id,
            node_name: String::new(),
        }
    }

    /// Returns the full name of a setting of the driver, as in `drivers.docker.volumes`.
    pub(crate) fn setting(&self, name: &str) -> String {
        format!("drivers.{}.{name}", self.engine_kind.name())
    }

    /// Returns the time without a container after which a pulled image is removed; `None`: never.
    pub(crate) fn image_delay(&self) -> Option<Duration> {
        let config = &self.config;
        config.remove_images.then_some(config.image_delay)
    }

    /// Returns the age from which a container of this node without a record is removed; `None`: never.
    pub fn dangling_grace(&self) -> Option<Duration> {
        let config = &self.config;
        config.remove_dangling.then_some(config.dangling_grace)
    }
}
