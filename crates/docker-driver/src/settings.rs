//! Facts that the driver starts with: the operator's settings and the node.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::DockerConfig;

/// The driver's name in jobs.
pub const NAME: &str = "docker";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub config: DockerConfig,
    /// Directory of the attempts' records; private to the agent.
    pub state_dir: PathBuf,
    /// The node's id and name, for labels.
    pub node_id: String,
    pub node_name: String,
}

impl Settings {
    /// Returns settings with the defaults of the operator's part.
    pub fn new(state_dir: PathBuf, node_id: String) -> Self {
        Self {
            config: DockerConfig::default(),
            state_dir,
            node_id,
            node_name: String::new(),
        }
    }

    /// Returns the age from which a container of this node without a record is removed; `None`: never.
    pub fn dangling_grace(&self) -> Option<Duration> {
        let config = &self.config;
        config.remove_dangling.then_some(config.dangling_grace)
    }
}
