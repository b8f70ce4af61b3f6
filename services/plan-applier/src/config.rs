//! The one config struct, read once.

use std::time::Duration;

use applier::bad_nodes::{Settings, Tracker};
use serde::{Deserialize, Serialize};
use service_kit::config::duration;
use service_kit::settings::DEFAULT_SHUTDOWN_GRACE_PERIOD;
use service_kit::{EtcdConfig, ListenConfig, TelemetryConfig};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub etcd: EtcdConfig,
    /// Where plans are taken.
    pub listen: ListenConfig,
    pub telemetry: TelemetryConfig,
    /// How long plans in hand may go on once it is told to end.
    #[serde(with = "duration")]
    pub shutdown_grace_period: Duration,
    /// Threads that the nodes of a large plan are verified on. Verifying only computes, so the
    /// default is the number of cores; 1 leaves the cores to others.
    pub verify_threads: usize,
    /// Whether a node whose parts of plans are rejected over and over is made ineligible. Off, as
    /// nothing makes it eligible again by itself.
    pub plan_rejection_tracker: bool,
    /// How many rejections within `plan_rejection_node_window` make it so.
    pub plan_rejection_node_threshold: u32,
    /// How long a rejection counts.
    #[serde(with = "duration")]
    pub plan_rejection_node_window: Duration,
    /// How long etcd keeps a leader that has fallen silent.
    #[serde(with = "duration")]
    pub election_ttl: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let bad_nodes = applier::bad_nodes::Settings::default();
        Self {
            etcd: EtcdConfig::default(),
            listen: ListenConfig::default(),
            telemetry: TelemetryConfig::default(),
            shutdown_grace_period: DEFAULT_SHUTDOWN_GRACE_PERIOD,
            verify_threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            plan_rejection_tracker: false,
            plan_rejection_node_threshold: bad_nodes.threshold,
            plan_rejection_node_window: bad_nodes.window,
            election_ttl: store::ElectionOptions::DEFAULT_TTL,
        }
    }
}

impl Config {
    /// Returns who counts rejected nodes; `None`: nobody does.
    pub(crate) fn tracker(&self) -> Option<Tracker> {
        let settings = Settings {
            threshold: self.plan_rejection_node_threshold,
            window: self.plan_rejection_node_window,
        };
        self.plan_rejection_tracker.then(|| Tracker::new(settings))
    }
}

impl service_kit::print::Documented for Config {
    const SOURCE: &'static str = include_str!("config.rs");
}
