//! Roles: the kinds of callers that rights are given to.

use std::fmt;
use std::str::FromStr;

/// A kind of caller, written into its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// An api-gateway.
    Gateway,
    /// An eval-broker.
    Broker,
    /// A scheduler-worker.
    Worker,
    /// A plan-applier.
    Applier,
    /// A deployment-watcher.
    Watcher,
    /// A cluster-controller.
    Controller,
    /// A client-node; the identity's name is the node's id.
    Node,
    /// A person or a program that manages the cluster with the command or the API.
    Operator,
    /// A program that reads only: dashboards, exporters of metrics, health checks.
    Monitor,
    /// A member of etcd: the certificate that it shows to clients and to other members.
    Etcd,
    /// A client of etcd.
    EtcdClient,
}

/// A text that names no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown role {0:?}: want one of {roles}", roles = Role::names())]
pub struct UnknownRole(pub String);

impl Role {
    /// Every role, in the order of the documentation.
    pub const ALL: [Self; 11] = [
        Self::Gateway,
        Self::Broker,
        Self::Worker,
        Self::Applier,
        Self::Watcher,
        Self::Controller,
        Self::Node,
        Self::Operator,
        Self::Monitor,
        Self::Etcd,
        Self::EtcdClient,
    ];

    /// Returns the role's name in certificates, on the command line and in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Broker => "broker",
            Self::Worker => "worker",
            Self::Applier => "applier",
            Self::Watcher => "watcher",
            Self::Controller => "controller",
            Self::Node => "node",
            Self::Operator => "operator",
            Self::Monitor => "monitor",
            Self::Etcd => "etcd",
            Self::EtcdClient => "etcd-client",
        }
    }

    /// Returns the name of the service whose processes have the role; `None`: they are no service of Kafila.
    pub const fn service(self) -> Option<&'static str> {
        match self {
            Self::Gateway => Some("api-gateway"),
            Self::Broker => Some("eval-broker"),
            Self::Worker => Some("scheduler-worker"),
            Self::Applier => Some("plan-applier"),
            Self::Watcher => Some("deployment-watcher"),
            Self::Controller => Some("cluster-controller"),
            Self::Node => Some("client-node"),
            Self::Operator | Self::Monitor | Self::Etcd | Self::EtcdClient => None,
        }
    }

    /// Returns the names of all roles, separated by commas.
    pub fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    /// Tells whether processes of this role accept connections, so that their certificates need the
    /// key usage of a server.
    pub const fn is_server(self) -> bool {
        !matches!(self, Self::Operator | Self::Monitor | Self::EtcdClient)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut roles = Self::ALL.into_iter();
        roles
            .find(|role| role.as_str() == text)
            .ok_or_else(|| UnknownRole(text.to_owned()))
    }
}
