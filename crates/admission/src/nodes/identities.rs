//! Identity tokens of tasks: a node gets those of its own allocations, with the claims that their job
//! says.

use std::time::Duration;

use model::refusal::{Kind, Refusal};
use model::{AllocId, Job, NodeId, Task, TaskGroup, WorkloadIdentity};
use state::Snapshot;
use workload_identity::{Grant, TokenRequest, Workload, cluster_identity};

/// The life of a token that a node exchanges for one of Vault or Consul at once.
const LOGIN_TTL: Duration = Duration::from_secs(3_600);
/// Audiences of such tokens without one in the node's settings. Source: Nomad's documentation.
const VAULT_AUDIENCE: &str = "vault.io";
const CONSUL_AUDIENCE: &str = "consul.io";

/// The reason why a node gets no token. Final only in a fresh snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityRefusal {
    /// Also for an allocation that does not exist: a node learns nothing about others.
    #[error(
        "allocation {alloc_id} is not one of node {node_id}: a node gets tokens of its own tasks"
    )]
    NotOwn { alloc_id: AllocId, node_id: NodeId },
    #[error("allocation {0} has ended: its tasks get no tokens")]
    Ended(AllocId),
    #[error("allocation {alloc_id} has no {what}")]
    NoWorkload { alloc_id: AllocId, what: String },
    #[error(
        "{what} has no identity {identity:?}: add `identity {{ name = {identity:?} }}` to the task, or a \
         block vault or consul of that cluster"
    )]
    NoIdentity { what: String, identity: String },
    #[error(
        "the audience of identity {0:?} is in the job: a node chooses it only for the logins at Vault and \
         Consul that the job leaves to it"
    )]
    Audience(String),
}

impl Refusal for IdentityRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::NotOwn { .. } => Kind::Denied,
            Self::Ended(_)
            | Self::NoWorkload { .. }
            | Self::NoIdentity { .. }
            | Self::Audience(_) => Kind::Precondition,
        }
    }
}

/// Decides on one token for `node_id`, which is authenticated.
///
/// # Errors
/// See [`IdentityRefusal`].
pub fn grant(
    snapshot: &Snapshot,
    node_id: NodeId,
    request: &TokenRequest,
) -> Result<Grant, IdentityRefusal> {
    let alloc_id = request.alloc_id;
    let view = snapshot
        .alloc(alloc_id)
        .filter(|view| view.alloc.node_id == node_id)
        .ok_or(IdentityRefusal::NotOwn { alloc_id, node_id })?;
    if view.is_client_terminal() {
        return Err(IdentityRefusal::Ended(alloc_id));
    }
    let alloc = &view.alloc;
    let missing = |what: String| IdentityRefusal::NoWorkload { alloc_id, what };
    let job = snapshot
        .job_version(&alloc.job_key(), alloc.job_version)
        .ok_or_else(|| missing("job".to_owned()))?;
    let job = &job.value;
    let group = job
        .task_group(&alloc.task_group)
        .ok_or_else(|| missing(format!("group {:?}", alloc.task_group)))?;
    let task = request.workload.task().map(|name| {
        let task = group.task(name);
        task.ok_or_else(|| missing(format!("task {name:?}")))
    });
    let task = task.transpose()?;
    if let Workload::Service { name, .. } = &request.workload {
        let services = task.map_or(&group.services, |task| &task.services);
        if !services.iter().any(|service| service.name == *name) {
            return Err(missing(format!("service {name:?}")));
        }
    }
    Terms::find(group, task, request).map(|terms| terms.grant(job, group, request))
}

/// The terms of one identity.
struct Terms {
    audience: Vec<String>,
    ttl: Duration,
    vault_role: Option<String>,
    vault_namespace: Option<String>,
    consul_namespace: Option<String>,
}

impl Terms {
    fn find(
        group: &TaskGroup,
        task: Option<&Task>,
        request: &TokenRequest,
    ) -> Result<Self, IdentityRefusal> {
        let name = request.identity.as_str();
        let mut terms = Self {
            audience: Vec::new(),
            ttl: LOGIN_TTL,
            vault_role: None,
            vault_namespace: None,
            consul_namespace: None,
        };
        let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let vault = task.and_then(|task| task.vault.as_ref());
        let vault = vault.filter(|vault| cluster_identity("vault", &vault.cluster) == name);
        let consul = task.and_then(|task| task.consul.as_ref());
        let consul = consul.or(group.consul.as_ref());
        let consul = consul.filter(|consul| cluster_identity("consul", &consul.cluster) == name);
        if let Some(vault) = vault {
            terms.vault_role = filled(&vault.role);
            terms.vault_namespace = filled(&vault.namespace);
        }
        if let Some(consul) = consul {
            terms.consul_namespace = filled(&consul.namespace);
        }
        if let Some(declared) = declared(task, &request.workload, name) {
            if !request.audience.is_empty() {
                return Err(IdentityRefusal::Audience(name.to_owned()));
            }
            terms.audience = declared.audience;
            terms.ttl = match declared.ttl {
                Duration::ZERO => WorkloadIdentity::TTL_DEFAULT,
                ttl => ttl.min(WorkloadIdentity::TTL_MAX),
            };
            return Ok(terms);
        }
        let default = match (vault, consul) {
            (Some(_), _) => VAULT_AUDIENCE,
            (None, Some(_)) => CONSUL_AUDIENCE,
            (None, None) => {
                let what = match &request.workload {
                    Workload::Task(name) => format!("task {name:?}"),
                    Workload::Service { name, .. } => format!("service {name:?}"),
                };
                let identity = name.to_owned();
                return Err(IdentityRefusal::NoIdentity { what, identity });
            }
        };
        terms.audience = match request.audience.is_empty() {
            true => vec![default.to_owned()],
            false => request.audience.clone(),
        };
        Ok(terms)
    }

    fn grant(self, job: &Job, group: &TaskGroup, request: &TokenRequest) -> Grant {
        let job_id = match job.parent_id.as_str() {
            "" => &job.id,
            parent => parent,
        };
        Grant {
            region: job.region.clone(),
            namespace: job.namespace.clone(),
            job_id: job_id.to_owned(),
            group: group.name.clone(),
            workload: request.workload.clone(),
            identity: request.identity.clone(),
            alloc_id: request.alloc_id,
            audience: self.audience,
            ttl: self.ttl,
            vault_role: self.vault_role,
            vault_namespace: self.vault_namespace,
            consul_namespace: self.consul_namespace,
        }
    }
}

/// Returns an identity that the job declares; every task has the default one.
fn declared(task: Option<&Task>, workload: &Workload, name: &str) -> Option<WorkloadIdentity> {
    let Workload::Task(_) = workload else {
        return None;
    };
    let stored = task?.identities.iter().find(|one| one.name == name);
    let is_default = name == WorkloadIdentity::DEFAULT_NAME;
    stored
        .cloned()
        .or_else(|| is_default.then(WorkloadIdentity::default_identity))
}

#[cfg(test)]
mod tests;
