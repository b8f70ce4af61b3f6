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
    /// It serves health and reflection only, so far.
    pub listen: ListenConfig,
    pub telemetry: TelemetryConfig,
    /// How long what is in hand may go on once it is told to end.
    #[serde(with = "duration")]
    pub shutdown_grace_period: Duration,
    /// How long health verdicts are gathered before the scheduler is asked to look: allocations
    /// that were started together become healthy together.
    #[serde(with = "duration")]
    pub health_window: Duration,
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
            health_window: rollout::Config::default().health_window,
            election_ttl: store::ElectionOptions::DEFAULT_TTL,
        }
    }
}

impl service_kit::print::Documented for Config {
    const SOURCE: &'static str = include_str!("config.rs");
}
