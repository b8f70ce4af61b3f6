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
    pub listen: ListenConfig,
    pub telemetry: TelemetryConfig,
    /// How long RPCs in hand may go on once it is told to end.
    #[serde(with = "duration")]
    pub shutdown_grace_period: Duration,
    /// Within which a node beats. The gateways tell the nodes; both must be told the same. 10 s at
    /// every size: a beat costs no write, so there is no reason to slow them down.
    #[serde(with = "duration")]
    pub heartbeat_ttl: Duration,
    /// How much later a beat may come before the node counts as down: covers a gateway's failover.
    #[serde(with = "duration")]
    pub heartbeat_grace: Duration,
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
            heartbeat_ttl: Duration::from_secs(10),
            heartbeat_grace: Duration::from_secs(5),
            election_ttl: store::ElectionOptions::DEFAULT_TTL,
        }
    }
}

impl service_kit::print::Documented for Config {
    const SOURCE: &'static str = include_str!("config.rs");
}
