//! Services of a job, their checks, and the registrations that nodes keep for them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::AllocId;
use crate::time::duration_ns;

/// A service of a task group or of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// May contain references such as `${NOMAD_GROUP_NAME}`, which the node replaces.
    pub name: String,
    #[serde(default, skip_serializing_if = "Provider::is_kafila")]
    pub provider: Provider,
    /// Task of a group's service that its checks restart; empty: all running tasks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// Label of a port or a number; empty: the service has no port.
    pub port: String,
    pub address_mode: AddressMode,
    /// The address to register; empty: by `address_mode`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Tags of a canary until its promotion; empty: `tags`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub canary_tags: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    pub on_update: OnUpdate,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ServiceCheck>,
    /// Meta of a canary until its promotion, in Consul; empty: `meta`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub canary_meta: BTreeMap<String, String>,
    /// Name -> `host:port` in Consul.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tagged_addresses: BTreeMap<String, String>,
    /// Others may change the tags in Consul's catalog.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_tag_override: bool,
    /// Weights in Consul's DNS; `None`: its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<ServiceWeights>,
    /// Kind of the service in Consul; empty: a typical service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

/// The registry of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Kafila itself, under Nomad's name for its own.
    #[default]
    #[serde(rename = "nomad")]
    Kafila,
    /// The node's Consul agent.
    Consul,
}

impl Provider {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kafila => "nomad",
            Self::Consul => "consul",
        }
    }

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_kafila(&self) -> bool {
        *self == Self::Kafila
    }
}

/// Weights of an instance in Consul's DNS, by the state of its checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceWeights {
    pub passing: u32,
    pub warning: u32,
}

/// Source of a registration's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressMode {
    /// The task's own, if its driver advertises one, else the host's.
    #[default]
    Auto,
    Host,
    /// The one that the driver gave the task.
    Driver,
    /// The allocation's, in its own network.
    Alloc,
    /// The allocation's IPv6 address.
    #[serde(rename = "alloc_ipv6")]
    AllocIpv6,
}

impl AddressMode {
    pub const ALL: [Self; 5] = [
        Self::Auto,
        Self::Host,
        Self::Driver,
        Self::Alloc,
        Self::AllocIpv6,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Host => "host",
            Self::Driver => "driver",
            Self::Alloc => "alloc",
            Self::AllocIpv6 => "alloc_ipv6",
        }
    }
}

/// Effect of a check on the health of an allocation for its deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUpdate {
    /// The check has to pass.
    #[default]
    RequireHealthy,
    /// The check has to pass or warn.
    IgnoreWarnings,
    /// The check does not count.
    Ignore,
}

impl OnUpdate {
    pub const ALL: [Self; 3] = [Self::RequireHealthy, Self::IgnoreWarnings, Self::Ignore];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequireHealthy => "require_healthy",
            Self::IgnoreWarnings => "ignore_warnings",
            Self::Ignore => "ignore",
        }
    }
}

/// A health check of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceCheck {
    pub name: String,
    #[serde(rename = "type")]
    pub check_type: CheckType,
    /// Label of a port or a number; empty: the service's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub port: String,
    /// The address to ask; `None`: the service's mode, where that is not [`AddressMode::Auto`], else the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_mode: Option<AddressMode>,
    /// Task that the check restarts, and that a script runs in; empty: the service's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// Program of a script.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(with = "duration_ns")]
    pub interval: Duration,
    #[serde(with = "duration_ns")]
    pub timeout: Duration,
    /// Path of an HTTP request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// `http` or `https`; empty: `http`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// Empty: GET.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// Header -> values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub header: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// Host name that the certificate must have; empty: the address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tls_server_name: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls_skip_verify: bool,
    /// Name of the service in a gRPC health request; empty: the whole server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub grpc_service: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grpc_use_tls: bool,
    /// State before the first result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_status: Option<InitialStatus>,
    /// Consecutive successes after which the check passes; 0 and 1: the first.
    #[serde(default)]
    pub success_before_passing: u32,
    /// Consecutive failures after which the check fails; 0 and 1: the first.
    #[serde(default)]
    pub failures_before_critical: u32,
    /// Consecutive failures after which Consul warns; 0: the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures_before_warning: u32,
    /// Text for people, in Consul.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    pub on_update: OnUpdate,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_restart: Option<CheckRestart>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckType {
    #[default]
    Http,
    Tcp,
    Grpc,
    /// A command inside a task.
    Script,
}

impl CheckType {
    pub const ALL: [Self; 4] = [Self::Http, Self::Tcp, Self::Grpc, Self::Script];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Grpc => "grpc",
            Self::Script => "script",
        }
    }
}

/// State of a check before its first result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InitialStatus {
    Passing,
    Warning,
    Critical,
}

impl InitialStatus {
    pub const ALL: [Self; 3] = [Self::Passing, Self::Warning, Self::Critical];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Restart of tasks whose check keeps failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRestart {
    /// Failures in a row that lead to a restart; 0: none do.
    pub limit: u32,
    /// Time after a start in which failures do not count.
    #[serde(with = "duration_ns")]
    pub grace: Duration,
    /// Warnings are no failures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_warnings: bool,
}

/// Owner of a service in its allocation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceOwner {
    Group,
    Task(String),
}

/// One address of a service, kept while its allocation runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRegistration {
    /// Unique in the cluster: [`registration_id`].
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Tags while the allocation is a canary; empty: `tags`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub canary_tags: Vec<String>,
    /// IP address or host name.
    pub address: String,
    /// 0: the service has no port.
    pub port: u16,
    /// Name of the service's task; empty: it is the group's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    #[serde(default, skip_serializing_if = "ServiceHealth::is_passing")]
    pub health: ServiceHealth,
}

/// The result of a registration's checks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceHealth {
    /// All have passed or warned, or there are none.
    #[default]
    Passing,
    /// None has failed, and some have no result yet.
    Pending,
    Failing,
}

impl ServiceHealth {
    pub const ALL: [Self; 3] = [Self::Passing, Self::Pending, Self::Failing];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Pending => "pending",
            Self::Failing => "failing",
        }
    }

    fn is_passing(&self) -> bool {
        *self == Self::Passing
    }
}

/// The registrations of one allocation: the value of `service/<allocation>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocServices {
    /// Ids distinct; never empty when stored.
    pub registrations: Vec<ServiceRegistration>,
    /// Ids that a user deleted: hidden until the node takes the registration back itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<String>,
}

impl AllocServices {
    /// Returns the registrations that readers get.
    pub fn shown(&self) -> impl Iterator<Item = &ServiceRegistration> {
        let shown = |it: &&ServiceRegistration| !self.deleted.contains(&it.id);
        self.registrations.iter().filter(shown)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Returns the id of a registration. Source: the form of Nomad's ids, from which programs take parts.
pub fn registration_id(
    alloc_id: AllocId,
    owner: &ServiceOwner,
    group: &str,
    service: &str,
    port: &str,
) -> String {
    let owner = match owner {
        ServiceOwner::Group => format!("group-{group}"),
        ServiceOwner::Task(task) => task.clone(),
    };
    format!("_nomad-task-{alloc_id}-{owner}-{service}-{port}")
}
