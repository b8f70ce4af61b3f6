//! The settings of the cluster-controller.

use std::time::Duration;

use controller::etcd::compaction::History;
use controller::etcd::{QuietHours, Settings};
use controller::garbage::Thresholds;
use service_kit::ConfigError;

use crate::SERVICE;

/// The least history that may be kept: a watch is seldom further behind.
const SHORTEST_HISTORY: Duration = Duration::from_secs(1);

service_host::config! {
    elected
    pub struct Config {
        /// The interval within which a node sends a heartbeat. Set the same value at every gateway:
        /// nodes send two heartbeats per value of their gateway. With a longer one there, nodes are
        /// marked down although they are alive once half of it exceeds this value and
        /// `heartbeat_grace`; with a shorter one, a dead node is detected no sooner.
        #[serde(with = "service_kit::config::duration")]
        pub heartbeat_ttl: Duration = model::node::DEFAULT_HEARTBEAT_TTL,
        /// Time beyond `heartbeat_ttl` without a heartbeat after which a node is marked down: it
        /// covers the failover of a gateway.
        #[serde(with = "service_kit::config::duration")]
        pub heartbeat_grace: Duration = controller::Config::default().heartbeat_grace,
        /// The interval of garbage collection.
        #[serde(with = "service_kit::config::duration")]
        pub gc_interval: Duration = Duration::from_secs(5 * 60),
        /// The time for which ended evaluations and allocations are kept after their last change.
        #[serde(with = "service_kit::config::duration")]
        pub eval_gc_threshold: Duration = Thresholds::default().eval,
        /// The time for which ended evaluations and allocations of batch and sysbatch jobs are kept
        /// after their last change, while the job is kept.
        #[serde(with = "service_kit::config::duration")]
        pub batch_eval_gc_threshold: Duration = Thresholds::default().batch_eval,
        /// The time for which dead jobs are kept after their last registration (not after their end), if
        /// they were stopped or ran to completion.
        #[serde(with = "service_kit::config::duration")]
        pub job_gc_threshold: Duration = Thresholds::default().job,
        /// The time for which ended deployments are kept; the newest one of a job always is.
        #[serde(with = "service_kit::config::duration")]
        pub deployment_gc_threshold: Duration = Thresholds::default().deployment,
        /// The time for which nodes that are down are kept.
        #[serde(with = "service_kit::config::duration")]
        pub node_gc_threshold: Duration = Thresholds::default().node,
        /// The time limit for the deletion of a namespace, a node pool or a volume. Then it is
        /// reverted, and the object can be used again. 1 min is far longer than the two
        /// transactions of a gateway take.
        #[serde(with = "service_kit::config::duration")]
        pub deletion_timeout: Duration = Duration::from_secs(60),
        /// The age up to which etcd's history is kept; older history is compacted. A service that
        /// was cut off for longer lists the store again, and an event stream resumes only within
        /// this time. 1 h is longer than any restart. 0s: nothing is compacted, which needs etcd's
        /// own `--auto-compaction-retention`.
        #[serde(with = "service_kit::config::duration")]
        pub compaction_history: Duration = Duration::from_secs(60 * 60),
        /// The age up to which history is kept once 70 % of etcd's quota are in use; from 80 % on, a
        /// tenth of it.
        #[serde(with = "service_kit::config::duration")]
        pub compaction_history_when_scarce: Duration = Duration::from_secs(10 * 60),
        /// The hours in which members of etcd that are a quarter free pages are defragmented, in
        /// UTC, as in `02:00-04:00`; empty: never. A member that is near its quota is defragmented
        /// at any time.
        pub defragment_hours: String = String::new(),
        /// Maximum number of jobs with metrics of their own, which the leader serves: the first by
        /// namespace and id, without children of periodic and parameterized jobs. Each task group has seven series.
        /// 0: no metrics of jobs.
        pub job_metrics_max: u32 = 1_000,
    }
}

impl Config {
    /// Returns the retention times of garbage collection.
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

    /// Returns the settings of the maintenance of etcd.
    ///
    /// # Errors
    /// The invalid field, and its valid values.
    pub(crate) fn maintenance(&self) -> Result<Settings, ConfigError> {
        let invalid = |problem: String| ConfigError::Invalid {
            service: SERVICE.to_owned(),
            problem,
        };
        let history = History {
            kept: self.compaction_history,
            kept_when_scarce: self.compaction_history_when_scarce,
        };
        if !history.kept.is_zero() && history.shortest() < SHORTEST_HISTORY {
            return Err(invalid(format!(
                "`compaction_history` and `compaction_history_when_scarce` are too short for watches to \
                 keep up: want at least {} s, or `compaction_history` 0s to compact nothing",
                SHORTEST_HISTORY.as_secs() * 10
            )));
        }
        let quiet_hours = match self.defragment_hours.trim() {
            "" => None,
            text => Some(text.parse::<QuietHours>()),
        };
        let quiet_hours = quiet_hours
            .transpose()
            .map_err(|error| invalid(format!("`defragment_hours`: {error}")))?;
        if let Some(problem) = self.etcd.quota_problem() {
            return Err(invalid(problem.to_owned()));
        }
        Ok(Settings {
            history,
            quota_bytes: self.etcd.quota_bytes,
            quiet_hours,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_of_the_maintenance_are_named() {
        assert!(Config::default().maintenance().is_ok());
        let wrong = |edit: fn(&mut Config)| {
            let mut config = Config::default();
            edit(&mut config);
            config.maintenance().unwrap_err().to_string()
        };
        for (text, field) in [
            (
                wrong(|config| config.compaction_history = Duration::from_millis(1)),
                "compaction_history",
            ),
            (
                wrong(|config| config.defragment_hours = "at night".to_owned()),
                "defragment_hours",
            ),
            (
                wrong(|config| config.etcd.quota_bytes = 0),
                "etcd.quota_bytes",
            ),
        ] {
            assert!(text.contains(field), "{text}");
        }
        let off = Config {
            compaction_history: Duration::ZERO,
            ..Config::default()
        };
        assert!(off.maintenance().is_ok());
    }
}
