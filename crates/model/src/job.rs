//! A job in canonical form: every default filled in, durations and operators parsed.
//!
//! This form is stored, compared and scheduled. The crate `job-fields` has the form that users write;
//! the crate `jobspec` turns it into this one by defaults and rules.

mod network;
mod policies;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::network::{Dns, Network, Port};
pub use self::policies::{
    DelayFunction, DisconnectStrategy, HealthCheck, MigrateStrategy, ReconcileChoice,
    ReschedulePolicy, RestartMode, RestartPolicy, UpdateStrategy,
};
use crate::artifact::Artifact;
use crate::constraint::{Affinity, Constraint, Spread};
use crate::consul::Consul;
use crate::csi::{CsiPluginTask, MountOptions};
use crate::ids::{EvalId, JobKey};
use crate::launch::{DispatchPayload, Parameterized, Payload, Periodic};
use crate::memory_max::MemoryMax;
use crate::resources::ComparableResources;
use crate::scaling::{Scaling, TaskScaling};
use crate::service::Service;
use crate::template::Template;
use crate::time::{Timestamp, duration_ns};
use crate::vault::Vault;
use crate::volume::{AccessMode, AttachmentMode, Capability};
use crate::workload_identity::WorkloadIdentity;

/// The highest priority of a job. Source: Nomad's default of `job_max_priority`.
pub const MAX_PRIORITY: u8 = 100;

/// The priority of a job without one, and of the evaluations of a purged job. Source: Nomad's default.
pub const DEFAULT_PRIORITY: u8 = 50;

/// The region of a job without one, which stands for the cluster's. Source: Nomad's default.
pub const DEFAULT_REGION: &str = "global";

/// A job: task groups, each to be placed `count` times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub namespace: String,
    pub id: String,
    pub name: String,
    pub region: String,
    #[serde(rename = "type")]
    pub job_type: JobType,
    /// 1 to 100; higher is scheduled first.
    pub priority: u8,
    pub all_at_once: bool,
    /// Globs; never empty.
    pub datacenters: Vec<String>,
    pub node_pool: String,
    pub constraints: Vec<Constraint>,
    pub affinities: Vec<Affinity>,
    pub spreads: Vec<Spread>,
    /// Names distinct; never empty.
    pub task_groups: Vec<TaskGroup>,
    /// The strategy that the groups inherited, for readers of the job: updates follow the groups'
    /// own. `None` for batch and sysbatch jobs, and for jobs stored without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateStrategy>,
    pub meta: BTreeMap<String, String>,
    /// Its description and links for web pages; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<Ui>,
    /// Launch times of a periodic job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub periodic: Option<Periodic>,
    /// Parameters of its dispatches, if it is dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameterized: Option<Parameterized>,
    /// The job that registered this one as its child; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent_id: String,
    /// Set for the child of a parameterized job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dispatched: bool,
    /// Input of the dispatch.
    #[serde(default, skip_serializing_if = "Payload::is_empty")]
    pub payload: Payload,
    /// Deduplicates its dispatch; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dispatch_token: String,
    /// Stopped; kept so that it can be inspected and started again.
    pub stop: bool,
    /// 0 for the first, one more with each change of the job.
    pub version: u64,
    /// The newest version that a user asked to run although nothing had changed: ended allocations of
    /// earlier versions are replaced, as if their tasks had changed. `None`: no such version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_version: Option<u64>,
    /// The evaluation id of the request that wrote this version of a job that only has children, and so gets
    /// no evaluation: a retry of the request finds the version by it. `None`: another kind of job, or
    /// a write of another kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_by: Option<EvalId>,
    pub submit_time: Timestamp,
}

impl Job {
    pub fn key(&self) -> JobKey {
        JobKey::new(self.namespace.as_str(), self.id.as_str())
    }

    pub fn task_group(&self, name: &str) -> Option<&TaskGroup> {
        self.task_groups.iter().find(|group| group.name == name)
    }

    /// Reports whether the user changed anything between `self` and `other`: every field counts but
    /// the versions, their request and the time of submission.
    pub fn spec_differs(&self, other: &Self) -> bool {
        let mut aligned = other.clone();
        aligned.version = self.version;
        aligned.forced_version = self.forced_version;
        aligned.written_by = self.written_by;
        aligned.submit_time = self.submit_time;
        if self.update.is_none() || other.update.is_none() {
            // One of the two was stored without it, which no user did.
            aligned.update = self.update;
        }
        *self != aligned
    }
}

/// Description and links of a job, for web pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ui {
    /// Markdown; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<UiLink>,
}

/// A link on web pages of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UiLink {
    pub label: String,
    pub url: String,
}

/// The scheduler of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobType {
    Service,
    Batch,
    System,
    Sysbatch,
}

impl JobType {
    pub const ALL: [Self; 4] = [Self::Service, Self::Batch, Self::System, Self::Sysbatch];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Batch => "batch",
            Self::System => "system",
            Self::Sysbatch => "sysbatch",
        }
    }

    /// Returns whether a task that succeeds is done: batch and sysbatch.
    pub fn runs_to_end(self) -> bool {
        match self {
            Self::Batch | Self::Sysbatch => true,
            Self::Service | Self::System => false,
        }
    }

    /// Returns whether every feasible node runs one allocation of each group: system and sysbatch.
    pub fn is_per_node(self) -> bool {
        match self {
            Self::System | Self::Sysbatch => true,
            Self::Service | Self::Batch => false,
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|job_type| job_type.as_str() == text)
    }
}

/// Tasks that are placed together on one node, `count` times.
///
/// The default is empty and for tests: a canonical group has a name, a task and its policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskGroup {
    pub name: String,
    pub count: u32,
    /// Names distinct; never empty; at least one without a lifecycle hook.
    pub tasks: Vec<Task>,
    pub constraints: Vec<Constraint>,
    pub affinities: Vec<Affinity>,
    pub spreads: Vec<Spread>,
    pub networks: Vec<Network>,
    pub restart: RestartPolicy,
    /// `None` for system and sysbatch jobs, unless their policy has attempts or is unlimited.
    pub reschedule: Option<ReschedulePolicy>,
    /// `None` for batch and sysbatch jobs.
    pub update: Option<UpdateStrategy>,
    /// `None` but for service jobs.
    pub migrate: Option<MigrateStrategy>,
    pub disconnect: Option<DisconnectStrategy>,
    pub ephemeral_disk: EphemeralDisk,
    /// Name → volume that tasks of the group may mount.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, VolumeRequest>,
    pub meta: BTreeMap<String, String>,
    #[serde(default, with = "duration_ns")]
    pub shutdown_delay: Duration,
    /// Batch and sysbatch only.
    #[serde(default, with = "duration_ns::option")]
    pub max_run_duration: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consul: Option<Consul>,
}

impl TaskGroup {
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// Returns the resources that one allocation of this group holds on a node.
    ///
    /// Tasks of different lifecycle stages do not run at the same time, so each dimension is the
    /// largest of three sums: before the main tasks, with them, after them. Disk is the group's
    /// ephemeral disk, once. The MHz of a task's reserved cores depend on the node and are left out:
    /// they are held all the time, beside the largest sum.
    /// Source: Nomad 2.0 behaviour.
    pub fn ask(&self) -> ComparableResources {
        let mut prestart = ComparableResources::default();
        let mut main = ComparableResources::default();
        let mut poststop = ComparableResources::default();
        for task in &self.tasks {
            let amount = task.resources.comparable();
            match task.lifecycle {
                None
                | Some(Lifecycle {
                    hook: LifecycleHook::Poststart,
                    ..
                }) => {
                    main = main.plus(amount);
                }
                Some(Lifecycle {
                    hook: LifecycleHook::Prestart,
                    sidecar,
                    ..
                }) => {
                    prestart = prestart.plus(amount);
                    if sidecar {
                        main = main.plus(amount);
                    }
                }
                Some(Lifecycle {
                    hook: LifecycleHook::Poststop,
                    ..
                }) => {
                    poststop = poststop.plus(amount);
                }
            }
        }
        let mut ask = prestart.max(main).max(poststop);
        ask.disk_mib = self.ephemeral_disk.size_mib;
        ask
    }
}

/// One process (or container) of a task group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub name: String,
    /// As in `raw_exec`, `exec`, `docker`, `podman`, `java` or `qemu`.
    pub driver: String,
    /// Empty: the driver's own choice.
    pub user: String,
    /// Options of the driver.
    pub config: serde_json::Map<String, serde_json::Value>,
    pub env: BTreeMap<String, String>,
    pub meta: BTreeMap<String, String>,
    pub constraints: Vec<Constraint>,
    pub affinities: Vec<Affinity>,
    pub resources: TaskResources,
    pub restart: RestartPolicy,
    #[serde(with = "duration_ns")]
    pub kill_timeout: Duration,
    /// As in `SIGINT`; empty: the driver's own choice.
    pub kill_signal: String,
    /// The end of the leader ends the other tasks.
    pub leader: bool,
    #[serde(default, with = "duration_ns")]
    pub shutdown_delay: Duration,
    pub lifecycle: Option<Lifecycle>,
    pub logs: LogConfig,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_payload: Option<DispatchPayload>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<Template>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Names distinct. Without one named `default`, the task has [`WorkloadIdentity::default_identity`]
    /// besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<WorkloadIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault: Option<Vault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consul: Option<Consul>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling_policies: Vec<TaskScaling>,
    /// The plugin of storage that the task provides to its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csi_plugin: Option<CsiPluginTask>,
    /// Names distinct.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<TaskAction>,
}

/// A command of a task that users run by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAction {
    pub name: String,
    pub command: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

impl Task {
    /// Returns the identity that every task has, as the task declares it.
    pub fn default_identity(&self) -> Cow<'_, WorkloadIdentity> {
        let is_default =
            |identity: &&WorkloadIdentity| identity.name == WorkloadIdentity::DEFAULT_NAME;
        match self.identities.iter().find(is_default) {
            Some(declared) => Cow::Borrowed(declared),
            None => Cow::Owned(WorkloadIdentity::default_identity()),
        }
    }
}

/// Resources of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResources {
    /// 0 when the task asks for `cores`.
    pub cpu_mhz: u32,
    /// Number of reserved cores; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cores: u32,
    pub memory_mib: u32,
    /// Memory beyond `memory_mib`, if the operator enables oversubscription.
    #[serde(rename = "memory_max_mib")]
    pub memory_max: MemoryMax,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceRequest>,
    /// Ports of this task alone, on the node's own network whatever their mode is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<Network>,
}

/// Devices that a task asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRequest {
    /// `type`, `vendor/type` or `vendor/type/name`.
    pub name: String,
    pub count: u64,
    pub constraints: Vec<Constraint>,
    pub affinities: Vec<Affinity>,
}

/// A volume that a group asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeRequest {
    pub volume_type: VolumeType,
    /// The volume's name on the node.
    pub source: String,
    pub read_only: bool,
    pub sticky: bool,
    /// Each allocation asks for a volume of its own: `source[index]`.
    pub per_alloc: bool,
    /// `None`: by [`Self::capability`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_mode: Option<AccessMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment_mode: Option<AttachmentMode>,
    /// Of volumes of storage systems.
    #[serde(default, skip_serializing_if = "MountOptions::is_empty")]
    pub mount_options: MountOptions,
}

impl VolumeRequest {
    pub fn is_csi(&self) -> bool {
        self.volume_type == VolumeType::Csi
    }

    /// Returns the access that it asks for on a registered volume.
    ///
    /// Source: Nomad's public behaviour: unset modes follow from `read_only`.
    pub fn capability(&self) -> Capability {
        let usual = if self.read_only {
            AccessMode::SingleNodeReaderOnly
        } else {
            AccessMode::SingleNodeWriter
        };
        Capability {
            access_mode: self.access_mode.unwrap_or(usual),
            attachment_mode: self.attachment_mode.unwrap_or(AttachmentMode::FileSystem),
        }
    }

    /// Returns the name on the node of the volume that one allocation asks for, as in `data[2]`;
    /// `name_index` is the number in the allocation's name.
    pub fn source_for(&self, name_index: u32) -> Cow<'_, str> {
        if self.per_alloc {
            Cow::Owned(format!("{}[{name_index}]", self.source))
        } else {
            Cow::Borrowed(&self.source)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VolumeType {
    /// A directory of the node.
    Host,
    /// A volume of a storage system, by a plugin.
    Csi,
}

impl VolumeType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Csi => "csi",
        }
    }
}

/// The mount of a group's volume in a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeMount {
    /// A name in the group's `volumes`.
    pub volume: String,
    pub destination: String,
    pub read_only: bool,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl TaskResources {
    fn comparable(&self) -> ComparableResources {
        ComparableResources {
            cpu_mhz: if self.cores > 0 {
                0
            } else {
                u64::from(self.cpu_mhz)
            },
            memory_mib: u64::from(self.memory_mib),
            disk_mib: 0,
        }
    }
}

/// The stage of a task that is not a main task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifecycle {
    pub hook: LifecycleHook,
    /// Keeps running beside the main tasks.
    pub sidecar: bool,
    /// The main tasks wait for this of a prestart sidecar; `None`: for its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<WaitFor>,
}

/// A condition of a sidecar, beyond its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitFor {
    /// Its checks have passed.
    Healthy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LifecycleHook {
    Prestart,
    Poststart,
    Poststop,
}

/// Limits of a task's log files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogConfig {
    pub max_files: u32,
    pub max_file_size_mib: u32,
    pub disabled: bool,
}

/// The disk that an allocation's tasks share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EphemeralDisk {
    pub size_mib: u64,
    pub sticky: bool,
    pub migrate: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_stored_before_its_limits_of_time_existed_is_read() {
        let group = TaskGroup {
            shutdown_delay: Duration::from_secs(5),
            max_run_duration: Some(Duration::from_secs(7)),
            ..TaskGroup::default()
        };
        let mut stored = serde_json::to_value(&group).unwrap();
        let read = |stored| serde_json::from_value::<TaskGroup>(stored).unwrap();
        assert_eq!(read(stored.clone()), group);
        let fields = stored.as_object_mut().unwrap();
        fields.remove("shutdown_delay").unwrap();
        fields.remove("max_run_duration").unwrap();
        assert_eq!(read(stored), TaskGroup::default());
    }
}
