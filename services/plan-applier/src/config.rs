//! The one config struct, read once.

use std::time::Duration;

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
    /// How long etcd keeps a leader that has fallen silent.
    #[serde(with = "duration")]
    pub election_ttl: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            etcd: EtcdConfig::default(),
            listen: ListenConfig::default(),
            telemetry: TelemetryConfig::default(),
            shutdown_grace_period: DEFAULT_SHUTDOWN_GRACE_PERIOD,
            verify_threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            election_ttl: store::ElectionOptions::DEFAULT_TTL,
        }
    }
}

impl service_kit::print::Documented for Config {
    const SOURCE: &'static str = include_str!("config.rs");
}
