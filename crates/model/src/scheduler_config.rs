//! The scheduler configuration: the operator's settings for the whole region.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::JobType;

/// The scheduler's configuration. Source of the defaults: Nomad's public behaviour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SchedulerConfiguration {
    pub algorithm: Algorithm,
    /// Tasks may use memory up to their `memory_max`; only `memory` is reserved for them.
    pub memory_oversubscription_enabled: bool,
    pub preemption: Preemption,
    /// New and changed jobs are refused; running jobs stay as they are.
    pub reject_job_registration: bool,
    /// The eval-broker delivers no evaluations; new ones are stored and wait.
    pub pause_eval_broker: bool,
    /// Node pool → overrides for its jobs. Stored with the pools.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, PoolConfiguration>,
}

impl SchedulerConfiguration {
    /// Returns the algorithm for jobs of `node_pool`.
    pub fn algorithm(&self, node_pool: &str) -> Algorithm {
        let of_pool = self.pools.get(node_pool).and_then(|pool| pool.algorithm);
        of_pool.unwrap_or(self.algorithm)
    }

    /// Tells whether tasks of jobs in `node_pool` may use memory beyond their reservation.
    pub fn oversubscribes_memory(&self, node_pool: &str) -> bool {
        let pool = self.pools.get(node_pool);
        let of_pool = pool.and_then(|pool| pool.memory_oversubscription_enabled);
        of_pool.unwrap_or(self.memory_oversubscription_enabled)
    }
}

/// Overrides for the jobs of one node pool; `None`: as in the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolConfiguration {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_oversubscription_enabled: Option<bool>,
}

impl PoolConfiguration {
    /// Tells whether there are no overrides.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Preference between feasible nodes by utilization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// Fuller nodes first: nodes fill up one after the other, and whole nodes stay free.
    #[default]
    Binpack,
    /// Emptier nodes first: every node keeps spare room.
    Spread,
}

impl Algorithm {
    pub const ALL: [Self; 2] = [Self::Binpack, Self::Spread];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Binpack => "binpack",
            Self::Spread => "spread",
        }
    }
}

/// Job types that may preempt allocations of jobs with a lower priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one answer for each type of job"
)]
pub struct Preemption {
    pub system: bool,
    pub sysbatch: bool,
    pub batch: bool,
    pub service: bool,
}

impl Default for Preemption {
    fn default() -> Self {
        Self {
            system: true,
            sysbatch: false,
            batch: false,
            service: false,
        }
    }
}

impl Preemption {
    pub fn is_enabled(self, job_type: JobType) -> bool {
        match job_type {
            JobType::Service => self.service,
            JobType::Batch => self.batch,
            JobType::System => self.system,
            JobType::Sysbatch => self.sysbatch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pools_settings_override_the_clusters() {
        let mut config = SchedulerConfiguration {
            memory_oversubscription_enabled: true,
            ..SchedulerConfiguration::default()
        };
        let pool = PoolConfiguration {
            algorithm: Some(Algorithm::Spread),
            memory_oversubscription_enabled: Some(false),
        };
        config.pools.insert("gpu".to_owned(), pool);
        config
            .pools
            .insert("plain".to_owned(), PoolConfiguration::default());
        assert_eq!(config.algorithm("gpu"), Algorithm::Spread);
        assert_eq!(config.algorithm("plain"), Algorithm::Binpack);
        assert_eq!(config.algorithm("unheard-of"), Algorithm::Binpack);
        assert!(!config.oversubscribes_memory("gpu"));
        assert!(config.oversubscribes_memory("plain"));
    }

    #[test]
    fn missing_fields_get_their_defaults() {
        let config: SchedulerConfiguration = serde_json::from_str("{}").unwrap();
        assert_eq!(config, SchedulerConfiguration::default());
        assert!(config.preemption.is_enabled(JobType::System));
        assert!(!config.preemption.is_enabled(JobType::Service));
    }
}
