//! Requests of nodes for tokens, and the tokens themselves.

use std::fmt;

use model::{AllocId, Timestamp};

/// The holder of a token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// A task, by name.
    Task(String),
    /// A service, by name, of a task or, without one, of the group.
    Service { task: Option<String>, name: String },
}

impl Workload {
    /// Returns the task; `None`: it is a service of the group.
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::Task(task) => Some(task),
            Self::Service { task, .. } => task.as_deref(),
        }
    }

    /// Returns the name in the token's subject.
    pub fn name(&self) -> &str {
        match self {
            Self::Task(name) | Self::Service { name, .. } => name,
        }
    }
}

/// A request for one token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenRequest {
    pub alloc_id: AllocId,
    pub workload: Workload,
    /// The name of the identity.
    pub identity: String,
    /// The audience of a token for a cluster of Vault or Consul that the job does not declare; else
    /// empty, because the job says it.
    pub audience: Vec<String>,
}

/// A signed token. Its text does not appear in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text, which is a secret.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A token with its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedToken {
    pub token: Token,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
}

/// Returns the name of the identity with which a task logs in at a cluster of Vault or Consul:
/// `vault_default`.
pub fn cluster_identity(system: &str, cluster: &str) -> String {
    format!("{system}_{cluster}")
}
