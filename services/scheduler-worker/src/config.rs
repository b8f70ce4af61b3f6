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
    /// It serves health and reflection only.
    pub listen: ListenConfig,
    pub telemetry: TelemetryConfig,
    /// How long evaluations in hand may go on once it is told to end.
    #[serde(with = "duration")]
    pub shutdown_grace_period: Duration,
    /// Evaluations worked on at the same time. Scheduling takes a core, so the default is the
    /// number of cores; waiting for the plan-applier takes none, hence at least 2.
    pub workers: u32,
    /// Job types that it takes; empty: all.
    #[serde(with = "service_kit::config::list")]
    pub job_types: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self {
            etcd: EtcdConfig::default(),
            listen: ListenConfig::default(),
            telemetry: TelemetryConfig::default(),
            shutdown_grace_period: DEFAULT_SHUTDOWN_GRACE_PERIOD,
            workers: u32::try_from(cores).unwrap_or(u32::MAX).max(2),
            job_types: Vec::new(),
        }
    }
}

impl service_kit::print::Documented for Config {
    const SOURCE: &'static str = include_str!("config.rs");
}
