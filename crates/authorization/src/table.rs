//! The table of rights.
//!
//! A new RPC gets a row here; docs/security.md repeats the table, and a test compares both.

use identity::Role::{self, Gateway, Monitor, Node, Operator, Worker};

/// The callers that may call a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every caller, also without a certificate: only gateways with a CA of nodes accept such callers.
    Anyone,
    /// Every caller with a certificate of the region, except those of etcd.
    Identified,
    /// Callers with one of these roles.
    Roles(&'static [Role]),
}

/// One row: a method, as `<package>.<service>/<method>`, and its callers.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    pub name: &'static str,
    pub access: Access,
}

/// Changes the cluster, or shows the output of tasks, which may contain secrets.
const OPERATORS: Access = Access::Roles(&[Operator]);
/// Shows the state of the cluster.
const READERS: Access = Access::Roles(&[Operator, Monitor]);
const NODES: Access = Access::Roles(&[Node]);
const WORKERS: Access = Access::Roles(&[Worker]);
const GATEWAYS: Access = Access::Roles(&[Gateway]);
/// Shows or changes the log of a process, at its own address or through a gateway.
const OPERATORS_AND_GATEWAYS: Access = Access::Roles(&[Operator, Gateway]);

const fn row(name: &'static str, access: Access) -> Method {
    Method { name, access }
}

/// Every method that a server of ours may have, in the order of the documentation.
pub const METHODS: &[Method] = &[
    row("kafila.v1.Jobs/Register", OPERATORS),
    row("kafila.v1.Jobs/Validate", OPERATORS),
    row("kafila.v1.Jobs/Plan", OPERATORS),
    row("kafila.v1.Jobs/Deregister", OPERATORS),
    row("kafila.v1.Jobs/Get", READERS),
    row("kafila.v1.Jobs/List", READERS),
    row("kafila.v1.Jobs/ListVersions", READERS),
    row("kafila.v1.Jobs/ListAllocations", READERS),
    row("kafila.v1.Jobs/ListEvaluations", READERS),
    row("kafila.v1.Jobs/ListDeployments", READERS),
    row("kafila.v1.Jobs/Revert", OPERATORS),
    row("kafila.v1.Jobs/SetStable", OPERATORS),
    row("kafila.v1.Jobs/TagVersion", OPERATORS),
    row("kafila.v1.Jobs/UntagVersion", OPERATORS),
    row("kafila.v1.Jobs/Dispatch", OPERATORS),
    row("kafila.v1.Jobs/ForcePeriodic", OPERATORS),
    row("kafila.v1.Jobs/Evaluate", OPERATORS),
    row("kafila.v1.Jobs/Scale", OPERATORS),
    row("kafila.v1.Jobs/GetScaleStatus", READERS),
    row("kafila.v1.Allocations/Get", READERS),
    row("kafila.v1.Allocations/List", READERS),
    row("kafila.v1.Allocations/Logs", OPERATORS),
    row("kafila.v1.Allocations/Restart", OPERATORS),
    row("kafila.v1.Allocations/Exec", OPERATORS),
    row("kafila.v1.Allocations/GetChecks", READERS),
    row("kafila.v1.Allocations/Stop", OPERATORS),
    row("kafila.v1.Allocations/ListFiles", OPERATORS),
    row("kafila.v1.Allocations/GetFile", OPERATORS),
    row("kafila.v1.Allocations/ReadFile", OPERATORS),
    row("kafila.v1.Allocations/Signal", OPERATORS),
    row("kafila.v1.Allocations/GetStats", READERS),
    row("kafila.v1.Evaluations/Get", READERS),
    row("kafila.v1.Evaluations/List", READERS),
    row("kafila.v1.Evaluations/ListAllocations", READERS),
    row("kafila.v1.Evaluations/Explain", READERS),
    row("kafila.v1.Evaluations/Delete", OPERATORS),
    row("kafila.v1.Deployments/Get", READERS),
    row("kafila.v1.Deployments/List", READERS),
    row("kafila.v1.Deployments/Promote", OPERATORS),
    row("kafila.v1.Deployments/Pause", OPERATORS),
    row("kafila.v1.Deployments/Fail", OPERATORS),
    row("kafila.v1.Deployments/SetAllocHealth", OPERATORS),
    row("kafila.v1.Deployments/Unblock", OPERATORS),
    row("kafila.v1.Nodes/Get", READERS),
    row("kafila.v1.Nodes/List", READERS),
    row("kafila.v1.Nodes/ListAllocations", READERS),
    row("kafila.v1.Nodes/UpdateEligibility", OPERATORS),
    row("kafila.v1.Nodes/UpdateDrain", OPERATORS),
    row("kafila.v1.Nodes/CreateIntroductionToken", OPERATORS),
    row("kafila.v1.Nodes/ListIntroductionTokens", OPERATORS),
    row("kafila.v1.Nodes/DeleteIntroductionToken", OPERATORS),
    row("kafila.v1.Nodes/Revoke", OPERATORS),
    row("kafila.v1.Nodes/Reinstate", OPERATORS),
    row("kafila.v1.Nodes/ListRevocations", OPERATORS),
    row("kafila.v1.Nodes/GetStats", READERS),
    row("kafila.v1.Nodes/GetMeta", READERS),
    row("kafila.v1.Nodes/ApplyMeta", OPERATORS),
    row("kafila.v1.Nodes/Refresh", OPERATORS),
    row("kafila.v1.NodePools/List", READERS),
    row("kafila.v1.NodePools/Get", READERS),
    row("kafila.v1.NodePools/Upsert", OPERATORS),
    row("kafila.v1.NodePools/Delete", OPERATORS),
    row("kafila.v1.NodePools/ListNodes", READERS),
    row("kafila.v1.NodePools/ListJobs", READERS),
    row("kafila.v1.Namespaces/List", READERS),
    row("kafila.v1.Namespaces/Get", READERS),
    row("kafila.v1.Namespaces/Upsert", OPERATORS),
    row("kafila.v1.Namespaces/Delete", OPERATORS),
    row("kafila.v1.Variables/List", READERS),
    row("kafila.v1.Variables/Get", OPERATORS),
    row("kafila.v1.Variables/Put", OPERATORS),
    row("kafila.v1.Variables/Delete", OPERATORS),
    row("kafila.v1.Variables/AcquireLock", OPERATORS),
    row("kafila.v1.Variables/RenewLock", OPERATORS),
    row("kafila.v1.Variables/ReleaseLock", OPERATORS),
    row("kafila.v1.Volumes/List", READERS),
    row("kafila.v1.Volumes/Get", READERS),
    row("kafila.v1.Volumes/Register", OPERATORS),
    row("kafila.v1.Volumes/Delete", OPERATORS),
    row("kafila.v1.Volumes/ListClaims", READERS),
    row("kafila.v1.Volumes/DeleteClaim", OPERATORS),
    row("kafila.v1.CsiVolumes/List", READERS),
    row("kafila.v1.CsiVolumes/Get", READERS),
    row("kafila.v1.CsiVolumes/Register", OPERATORS),
    row("kafila.v1.CsiVolumes/Deregister", OPERATORS),
    row("kafila.v1.CsiVolumes/Create", OPERATORS),
    row("kafila.v1.CsiVolumes/Delete", OPERATORS),
    row("kafila.v1.CsiVolumes/Detach", OPERATORS),
    row("kafila.v1.CsiVolumes/ListExternal", READERS),
    row("kafila.v1.CsiVolumes/CreateSnapshot", OPERATORS),
    row("kafila.v1.CsiVolumes/DeleteSnapshot", OPERATORS),
    row("kafila.v1.CsiVolumes/ListSnapshots", READERS),
    row("kafila.v1.CsiVolumes/ListPlugins", READERS),
    row("kafila.v1.CsiVolumes/GetPlugin", READERS),
    row("kafila.v1.ScalingPolicies/List", READERS),
    row("kafila.v1.ScalingPolicies/Get", READERS),
    row("kafila.v1.Services/List", READERS),
    row("kafila.v1.Services/ListRegistrations", READERS),
    row("kafila.v1.Services/Delete", OPERATORS),
    row("kafila.v1.Events/Stream", READERS),
    row("kafila.v1.Operator/ListLeaders", READERS),
    row("kafila.v1.Operator/ListProcesses", READERS),
    row("kafila.v1.Operator/GetVersion", READERS),
    row("kafila.v1.Operator/GetSchedulerConfiguration", READERS),
    row("kafila.v1.Operator/SetSchedulerConfiguration", OPERATORS),
    row("kafila.v1.Operator/CollectGarbage", OPERATORS),
    row("kafila.v1.Operator/GetEtcdStatus", READERS),
    row("kafila.v1.Operator/CompactEtcd", OPERATORS),
    row("kafila.v1.Operator/DefragmentEtcd", OPERATORS),
    row("kafila.v1.Operator/DisarmEtcd", OPERATORS),
    row("kafila.v1.Operator/SaveSnapshot", OPERATORS),
    row("kafila.v1.Operator/ListSigningKeys", READERS),
    row("kafila.v1.Operator/RotateSigningKey", OPERATORS),
    row("kafila.v1.Operator/RemoveSigningKey", OPERATORS),
    row("kafila.v1.Agent/Monitor", OPERATORS_AND_GATEWAYS),
    row("kafila.v1.Agent/GetLogLevel", OPERATORS_AND_GATEWAYS),
    row("kafila.v1.Agent/SetLogLevel", OPERATORS_AND_GATEWAYS),
    row("kafila.internal.v1.NodeSessions/Register", NODES),
    row("kafila.internal.v1.NodeSessions/Heartbeat", NODES),
    row("kafila.internal.v1.NodeSessions/WatchAllocations", NODES),
    row("kafila.internal.v1.NodeSessions/ReportAllocations", NODES),
    row("kafila.internal.v1.NodeSessions/SignIdentities", NODES),
    row("kafila.internal.v1.NodeSessions/LookUp", NODES),
    row("kafila.internal.v1.NodeSessions/CsiMounts", NODES),
    row("kafila.internal.v1.NodeSessions/WatchServices", NODES),
    row("kafila.internal.v1.NodeSessions/AwaitConnections", NODES),
    row("kafila.internal.v1.NodeSessions/OpenConnection", NODES),
    row(
        "kafila.internal.v1.NodeIntroductions/Introduce",
        Access::Anyone,
    ),
    row("kafila.internal.v1.NodeIntroductions/Renew", NODES),
    row("kafila.internal.v1.NodeConnections/Relay", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/Logs", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/Restart", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/Exec", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/Checks", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/CsiControl", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/ListFiles", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/GetFile", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/ReadFile", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/Signal", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/AllocStats", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/HostStats", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/GetMeta", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/ApplyMeta", GATEWAYS),
    row("kafila.internal.v1.NodeOperations/Refresh", GATEWAYS),
    row("kafila.internal.v1.EvalBroker/Dequeue", WORKERS),
    row("kafila.internal.v1.EvalBroker/Ack", WORKERS),
    row("kafila.internal.v1.EvalBroker/Nack", WORKERS),
    row("kafila.internal.v1.EvalBroker/Extend", WORKERS),
    row("kafila.internal.v1.EvalBroker/Stats", READERS),
    row("kafila.internal.v1.PlanApplier/Submit", WORKERS),
    row("kafila.internal.v1.Liveness/Report", GATEWAYS),
    row("kafila.internal.v1.Maintenance/CollectGarbage", GATEWAYS),
    row("grpc.health.v1.Health/Check", Access::Identified),
    row("grpc.health.v1.Health/Watch", Access::Identified),
    row(
        "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        Access::Identified,
    ),
];

/// Returns the row of a method; `name` as in [`Method::name`].
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

impl Access {
    /// Tells whether a certificate with this role suffices.
    pub fn includes(self, role: Role) -> bool {
        match self {
            Self::Anyone => true,
            Self::Identified => !matches!(role, Role::Etcd | Role::EtcdClient),
            Self::Roles(roles) => roles.contains(&role),
        }
    }

    /// Returns the role that a caller needs, for messages: "role operator or monitor".
    pub fn needed(self) -> String {
        match self {
            Self::Anyone => self.describe(),
            Self::Identified => "any role but etcd and etcd-client".to_owned(),
            Self::Roles(_) => format!("role {}", self.describe()),
        }
    }

    /// Returns the callers in words, for the documentation: "operator or monitor".
    pub fn describe(self) -> String {
        match self {
            Self::Anyone => "every caller".to_owned(),
            Self::Identified => "every role".to_owned(),
            Self::Roles(roles) => {
                let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
                names.join(" or ")
            }
        }
    }
}
