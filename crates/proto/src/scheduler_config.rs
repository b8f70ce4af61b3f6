//! The scheduler configuration.

use model::{Algorithm, FieldErrors, Indexed, Preemption, SchedulerConfiguration};

use crate::fields::{At as _, Read, optional_word, required};
use crate::v1;

impl TryFrom<v1::SchedulerConfiguration> for SchedulerConfiguration {
    type Error = FieldErrors;

    /// Reads the cluster's settings; overrides of node pools are part of their own messages.
    fn try_from(wire: v1::SchedulerConfiguration) -> Result<Self, FieldErrors> {
        read(wire).at("scheduler_config")
    }
}

fn read(wire: v1::SchedulerConfiguration) -> Read<SchedulerConfiguration> {
    Ok(SchedulerConfiguration {
        algorithm: algorithm(&wire.scheduler_algorithm)
            .at("scheduler_algorithm")?
            .unwrap_or_default(),
        memory_oversubscription_enabled: wire.memory_oversubscription_enabled,
        // Left out, it would turn off preemption for system jobs unseen.
        preemption: required(wire.preemption_config)
            .at("preemption_config")?
            .into(),
        reject_job_registration: wire.reject_job_registration,
        pause_eval_broker: wire.pause_eval_broker,
        ..SchedulerConfiguration::default()
    })
}

/// Reads an algorithm; empty: none.
pub(crate) fn algorithm(text: &str) -> Read<Option<Algorithm>> {
    optional_word(text, &Algorithm::ALL, Algorithm::as_str)
}

impl From<v1::PreemptionConfig> for Preemption {
    fn from(wire: v1::PreemptionConfig) -> Self {
        Self {
            system: wire.system_scheduler_enabled,
            sysbatch: wire.sysbatch_scheduler_enabled,
            batch: wire.batch_scheduler_enabled,
            service: wire.service_scheduler_enabled,
        }
    }
}

impl From<Preemption> for v1::PreemptionConfig {
    fn from(preemption: Preemption) -> Self {
        Self {
            system_scheduler_enabled: preemption.system,
            sysbatch_scheduler_enabled: preemption.sysbatch,
            batch_scheduler_enabled: preemption.batch,
            service_scheduler_enabled: preemption.service,
        }
    }
}

impl From<&SchedulerConfiguration> for v1::SchedulerConfiguration {
    fn from(config: &SchedulerConfiguration) -> Self {
        Self {
            scheduler_algorithm: config.algorithm.as_str().to_owned(),
            preemption_config: Some(config.preemption.into()),
            memory_oversubscription_enabled: config.memory_oversubscription_enabled,
            reject_job_registration: config.reject_job_registration,
            pause_eval_broker: config.pause_eval_broker,
            create_index: 0,
            modify_index: 0,
        }
    }
}

impl From<&Indexed<SchedulerConfiguration>> for v1::SchedulerConfiguration {
    fn from(config: &Indexed<SchedulerConfiguration>) -> Self {
        Self {
            create_index: config.create_index,
            modify_index: config.modify_index,
            ..Self::from(&config.value)
        }
    }
}
