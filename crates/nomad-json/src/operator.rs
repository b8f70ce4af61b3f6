//! The scheduler configuration, the leaders and the processes, some of which only Kafila has.

use proto::v1;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Leader<'a> {
    service: &'a str,
    address: &'a str,
    replica: &'a str,
    term: u64,
}

impl<'a> From<&'a v1::Leader> for Leader<'a> {
    fn from(leader: &'a v1::Leader) -> Self {
        Self {
            service: &leader.service,
            address: &leader.address,
            replica: &leader.replica,
            term: leader.term,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Process<'a> {
    service: &'a str,
    address: &'a str,
    version: &'a str,
    leader: bool,
    /// Absent: not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<bool>,
}

impl<'a> From<&'a v1::Process> for Process<'a> {
    fn from(process: &'a v1::Process) -> Self {
        Self::new(process, None)
    }
}

impl<'a> Process<'a> {
    /// `answers`: whether the process answers the gateway.
    pub fn new(process: &'a v1::Process, answers: Option<bool>) -> Self {
        Self {
            service: &process.service,
            address: &process.address,
            version: &process.version,
            leader: process.is_leader,
            answers,
        }
    }
}

/// As Nomad's API wraps it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct SchedulerConfig<'a> {
    scheduler_config: SchedulerConfiguration<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct SchedulerConfiguration<'a> {
    scheduler_algorithm: &'a str,
    preemption_config: PreemptionConfig,
    memory_oversubscription_enabled: bool,
    reject_job_registration: bool,
    pause_eval_broker: bool,
    create_index: u64,
    modify_index: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one answer for each type of job"
)]
struct PreemptionConfig {
    system_scheduler_enabled: bool,
    #[serde(rename = "SysBatchSchedulerEnabled")]
    sysbatch_scheduler_enabled: bool,
    batch_scheduler_enabled: bool,
    service_scheduler_enabled: bool,
}

impl<'a> From<&'a v1::SchedulerConfiguration> for SchedulerConfig<'a> {
    fn from(config: &'a v1::SchedulerConfiguration) -> Self {
        let preemption = config.preemption_config.unwrap_or_default();
        Self {
            scheduler_config: SchedulerConfiguration {
                scheduler_algorithm: &config.scheduler_algorithm,
                preemption_config: PreemptionConfig {
                    system_scheduler_enabled: preemption.system_scheduler_enabled,
                    sysbatch_scheduler_enabled: preemption.sysbatch_scheduler_enabled,
                    batch_scheduler_enabled: preemption.batch_scheduler_enabled,
                    service_scheduler_enabled: preemption.service_scheduler_enabled,
                },
                memory_oversubscription_enabled: config.memory_oversubscription_enabled,
                reject_job_registration: config.reject_job_registration,
                pause_eval_broker: config.pause_eval_broker,
                create_index: config.create_index,
                modify_index: config.modify_index,
            },
        }
    }
}
