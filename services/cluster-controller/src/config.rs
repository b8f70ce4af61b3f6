//! The one config struct, read once.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use service_kit::config::duration;
use service_kit::settings::DEFAULT_SHUTDOWN_GRACE_PERIOD;
use service_kit::{EtcdConfig, ListenConfig, TelemetryConfig};
use upkeep::garbage::Thresholds;

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
    /// How often what nobody needs any more is deleted.
    #[serde(with = "duration")]
    pub gc_interval: Duration,
    /// How long after its last change an ended evaluation is kept, and an ended allocation.
    #[serde(with = "duration")]
    pub eval_gc_threshold: Duration,
    /// The same of batch and sysbatch work, while its job is kept.
    #[serde(with = "duration")]
    pub batch_eval_gc_threshold: Duration,
    /// How long after it was registered a dead job is kept, if it was stopped or ran to its end.
    #[serde(with = "duration")]
    pub job_gc_threshold: Duration,
    /// How long a deployment that is over is kept; a job's newest one stays.
    #[serde(with = "duration")]
    pub deployment_gc_threshold: Duration,
    /// How long a node that is down is kept.
    #[serde(with = "duration")]
    pub node_gc_threshold: Duration,
    /// How long deleting a namespace, a node pool or a volume may take: what was begun and not
    /// finished by then is there again.
    #[serde(with = "duration")]
    pub deletion_timeout: Duration,
    /// How long etcd keeps a leader that has fallen silent.
    #[serde(with = "duration")]
    pub election_ttl: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let kept = Thresholds::default();
        Self {
            etcd: EtcdConfig::default(),
            listen: ListenConfig::default(),
            telemetry: TelemetryConfig::default(),
            shutdown_grace_period: DEFAULT_SHUTDOWN_GRACE_PERIOD,
            heartbeat_ttl: Duration::from_secs(10),
            heartbeat_grace: Duration::from_secs(5),
            gc_interval: Duration::from_secs(5 * 60),
            eval_gc_threshold: kept.eval,
            batch_eval_gc_threshold: kept.batch_eval,
            job_gc_threshold: kept.job,
            deployment_gc_threshold: kept.deployment,
            node_gc_threshold: kept.node,
            // Far longer than a gateway takes for its two transactions.
            deletion_timeout: Duration::from_secs(60),
            election_ttl: store::ElectionOptions::DEFAULT_TTL,
        }
    }
}

impl Config {
    /// Returns how long what is over is kept.
    pub(crate) fn thresholds(&self) -> Thresholds {
        Thresholds {
            eval: self.eval_gc_threshold,
            batch_eval: self.batch_eval_gc_threshold,
            job: self.job_gc_threshold,
            deployment: self.deployment_gc_threshold,
            node: self.node_gc_threshold,
            is_forced: false,
        }
    }
}

impl service_kit::print::Documented for Config {
    const SOURCE: &'static str = include_str!("config.rs");
}
