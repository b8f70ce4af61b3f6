//! A job as a user may write it: everything optional, nothing checked.
//!
//! The JSON form is Nomad's: CamelCase keys, durations as integer nanoseconds (a string such as
//! `"30s"` is accepted too). Job files, the RPC API and job JSON all arrive here; the crate
//! `jobspec` fills in the defaults and checks the result. [`Job::from`] goes the other way, for
//! showing a stored job.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

mod from_job;
mod launch;

pub use launch::{DispatchPayload, Parameterized, Periodic, Scaling};

/// A span of time: nanoseconds, or a text such as `1h30m` not yet parsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Span {
    /// May be negative, which validation refuses where it makes no sense.
    Nanoseconds(i64),
    Text(String),
}

impl From<Duration> for Span {
    fn from(span: Duration) -> Self {
        Self::Nanoseconds(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Job {
    pub namespace: Option<String>,
    #[serde(rename = "ID")]
    pub id: Option<String>,
    pub name: Option<String>,
    pub region: Option<String>,
    #[serde(rename = "Type")]
    pub job_type: Option<String>,
    pub priority: Option<i64>,
    pub all_at_once: Option<bool>,
    pub datacenters: Option<Vec<String>>,
    pub node_pool: Option<String>,
    pub constraints: Option<Vec<Constraint>>,
    pub affinities: Option<Vec<Affinity>>,
    pub spreads: Option<Vec<Spread>>,
    pub task_groups: Option<Vec<TaskGroup>>,
    pub update: Option<UpdateStrategy>,
    pub reschedule: Option<ReschedulePolicy>,
    pub migrate: Option<MigrateStrategy>,
    pub meta: Option<BTreeMap<String, String>>,
    pub periodic: Option<Periodic>,
    #[serde(rename = "ParameterizedJob")]
    pub parameterized: Option<Parameterized>,
    /// Set on read; on write it must be what is stored, or missing. So are the three below.
    #[serde(rename = "ParentID")]
    pub parent_id: Option<String>,
    pub dispatched: Option<bool>,
    /// Base64.
    pub payload: Option<String>,
    pub dispatch_idempotency_token: Option<String>,
    pub stop: Option<bool>,
    /// Set on read, ignored on write.
    pub version: Option<u64>,
    /// Set on read, ignored on write: Unix nanoseconds.
    pub submit_time: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskGroup {
    pub name: Option<String>,
    pub count: Option<i64>,
    pub tasks: Option<Vec<Task>>,
    pub constraints: Option<Vec<Constraint>>,
    pub affinities: Option<Vec<Affinity>>,
    pub spreads: Option<Vec<Spread>>,
    pub networks: Option<Vec<Network>>,
    #[serde(rename = "RestartPolicy")]
    pub restart: Option<RestartPolicy>,
    #[serde(rename = "ReschedulePolicy")]
    pub reschedule: Option<ReschedulePolicy>,
    pub update: Option<UpdateStrategy>,
    pub migrate: Option<MigrateStrategy>,
    pub disconnect: Option<DisconnectStrategy>,
    pub ephemeral_disk: Option<EphemeralDisk>,
    pub volumes: Option<BTreeMap<String, VolumeRequest>>,
    pub meta: Option<BTreeMap<String, String>>,
    pub shutdown_delay: Option<Span>,
    pub max_run_duration: Option<Span>,
    pub scaling: Option<Scaling>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Task {
    pub name: Option<String>,
    pub driver: Option<String>,
    pub user: Option<String>,
    pub config: Option<serde_json::Map<String, serde_json::Value>>,
    pub env: Option<BTreeMap<String, String>>,
    pub meta: Option<BTreeMap<String, String>>,
    pub constraints: Option<Vec<Constraint>>,
    pub affinities: Option<Vec<Affinity>>,
    pub resources: Option<Resources>,
    #[serde(rename = "RestartPolicy")]
    pub restart: Option<RestartPolicy>,
    pub kill_timeout: Option<Span>,
    pub kill_signal: Option<String>,
    pub leader: Option<bool>,
    pub shutdown_delay: Option<Span>,
    pub lifecycle: Option<Lifecycle>,
    #[serde(rename = "LogConfig")]
    pub logs: Option<LogConfig>,
    pub volume_mounts: Option<Vec<VolumeMount>>,
    pub dispatch_payload: Option<DispatchPayload>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    #[serde(rename = "CPU")]
    pub cpu: Option<i64>,
    #[serde(rename = "Cores")]
    pub cores: Option<i64>,
    #[serde(rename = "MemoryMB")]
    pub memory: Option<i64>,
    /// −1: no limit.
    #[serde(rename = "MemoryMaxMB")]
    pub memory_max: Option<i64>,
    #[serde(rename = "Devices")]
    pub devices: Option<Vec<Device>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Device {
    pub name: Option<String>,
    pub count: Option<i64>,
    pub constraints: Option<Vec<Constraint>>,
    pub affinities: Option<Vec<Affinity>>,
}

/// A volume that a group asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VolumeRequest {
    /// The key that it stands under, again.
    pub name: Option<String>,
    #[serde(rename = "Type")]
    pub volume_type: Option<String>,
    pub source: Option<String>,
    pub read_only: Option<bool>,
    pub sticky: Option<bool>,
    pub per_alloc: Option<bool>,
    pub access_mode: Option<String>,
    pub attachment_mode: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VolumeMount {
    pub volume: Option<String>,
    pub destination: Option<String>,
    pub read_only: Option<bool>,
    pub propagation_mode: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Lifecycle {
    pub hook: Option<String>,
    pub sidecar: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogConfig {
    #[serde(rename = "MaxFiles")]
    pub max_files: Option<i64>,
    #[serde(rename = "MaxFileSizeMB")]
    pub max_file_size: Option<i64>,
    #[serde(rename = "Disabled")]
    pub disabled: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Network {
    pub mode: Option<String>,
    pub reserved_ports: Option<Vec<Port>>,
    pub dynamic_ports: Option<Vec<Port>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Port {
    pub label: Option<String>,
    /// The static port; absent or 0 for a dynamic one.
    pub value: Option<i64>,
    pub to: Option<i64>,
    pub host_network: Option<String>,
    pub ignore_collision: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RestartPolicy {
    pub attempts: Option<i64>,
    pub interval: Option<Span>,
    pub delay: Option<Span>,
    pub mode: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ReschedulePolicy {
    pub attempts: Option<i64>,
    pub interval: Option<Span>,
    pub delay: Option<Span>,
    pub delay_function: Option<String>,
    pub max_delay: Option<Span>,
    pub unlimited: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct UpdateStrategy {
    pub max_parallel: Option<i64>,
    pub health_check: Option<String>,
    pub min_healthy_time: Option<Span>,
    pub healthy_deadline: Option<Span>,
    pub progress_deadline: Option<Span>,
    pub auto_revert: Option<bool>,
    pub auto_promote: Option<bool>,
    pub canary: Option<i64>,
    pub stagger: Option<Span>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MigrateStrategy {
    pub max_parallel: Option<i64>,
    pub health_check: Option<String>,
    pub min_healthy_time: Option<Span>,
    pub healthy_deadline: Option<Span>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DisconnectStrategy {
    pub lost_after: Option<Span>,
    pub stop_on_client_after: Option<Span>,
    pub replace: Option<bool>,
    pub reconcile: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EphemeralDisk {
    #[serde(rename = "SizeMB")]
    pub size: Option<i64>,
    #[serde(rename = "Sticky")]
    pub sticky: Option<bool>,
    #[serde(rename = "Migrate")]
    pub migrate: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Constraint {
    #[serde(rename = "LTarget")]
    pub left: Option<String>,
    #[serde(rename = "Operand")]
    pub operator: Option<String>,
    #[serde(rename = "RTarget")]
    pub right: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Affinity {
    #[serde(rename = "LTarget")]
    pub left: Option<String>,
    #[serde(rename = "Operand")]
    pub operator: Option<String>,
    #[serde(rename = "RTarget")]
    pub right: Option<String>,
    #[serde(rename = "Weight")]
    pub weight: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spread {
    #[serde(rename = "Attribute")]
    pub attribute: Option<String>,
    #[serde(rename = "Weight")]
    pub weight: Option<i64>,
    #[serde(rename = "SpreadTarget")]
    pub targets: Option<Vec<SpreadTarget>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SpreadTarget {
    pub value: Option<String>,
    pub percent: Option<i64>,
}
