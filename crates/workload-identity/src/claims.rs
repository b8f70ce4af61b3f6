//! Claims of a token: those of RFC 7519, and the names of the task under which Nomad's tokens carry
//! them, so that roles of Vault and Consul need no change.

use std::time::Duration;

use model::{AllocId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::request::Workload;

/// The audience: a text if it is one, else a list (RFC 7519, 4.1.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Audience {
    fn new(mut audience: Vec<String>) -> Self {
        match audience.len() {
            1 => Self::One(audience.remove(0)),
            _ => Self::Many(audience),
        }
    }

    pub fn contains(&self, audience: &str) -> bool {
        match self {
            Self::One(one) => one == audience,
            Self::Many(many) => many.iter().any(|one| one == audience),
        }
    }
}

/// The payload of a token. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iss: Option<String>,
    /// `<region>:<namespace>:<job>:<group>:<task or service>:<identity>`.
    pub sub: String,
    pub aud: Audience,
    pub iat: u64,
    pub nbf: u64,
    pub exp: u64,
    pub jti: String,
    pub nomad_namespace: String,
    pub nomad_job_id: String,
    pub nomad_allocation_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nomad_task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nomad_service: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault_role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault_namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consul_namespace: Option<String>,
}

/// Everything about a token but its times, id and issuer: the decision of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub region: String,
    pub namespace: String,
    /// Of a child of a periodic or parameterized job: that of the parent, which outlives it.
    pub job_id: String,
    pub group: String,
    pub workload: Workload,
    pub identity: String,
    pub alloc_id: AllocId,
    pub audience: Vec<String>,
    pub ttl: Duration,
    pub vault_role: Option<String>,
    pub vault_namespace: Option<String>,
    pub consul_namespace: Option<String>,
}

impl Grant {
    /// Returns the claims of a token that is issued `now`; `jti` is unique.
    pub fn claims(&self, now: Timestamp, jti: String, issuer: Option<&str>) -> Claims {
        let is_service = matches!(self.workload, Workload::Service { .. });
        let name = self.workload.name();
        let subject = [
            &self.region,
            &self.namespace,
            &self.job_id,
            &self.group,
            name,
            &self.identity,
        ];
        Claims {
            iss: issuer.map(str::to_owned),
            sub: subject.join(":"),
            aud: Audience::new(self.audience.clone()),
            iat: now.as_secs(),
            nbf: now.as_secs(),
            exp: now.plus(self.ttl).as_secs(),
            jti,
            nomad_namespace: self.namespace.clone(),
            nomad_job_id: self.job_id.clone(),
            nomad_allocation_id: self.alloc_id.to_string(),
            nomad_task: self.workload.task().map(str::to_owned),
            nomad_service: is_service.then(|| name.to_owned()),
            vault_role: self.vault_role.clone(),
            vault_namespace: self.vault_namespace.clone(),
            consul_namespace: self.consul_namespace.clone(),
        }
    }
}
