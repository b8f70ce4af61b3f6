//! Identities of tasks: signed tokens that other systems accept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::template::ChangeMode;
use crate::time::duration_ns;

/// One identity of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadIdentity {
    /// Distinct within a task.
    pub name: String,
    /// Systems that accept the token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<String>,
    /// Reaction of the task to a renewed token, never [`ChangeMode::Script`]; `None`: as
    /// [`ChangeMode::Noop`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_mode: Option<ChangeMode>,
    /// As in `SIGHUP`; needed by [`ChangeMode::Signal`] only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub change_signal: String,
    /// The token becomes a variable of the task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub env: bool,
    /// The token becomes a file of the task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub file: bool,
    /// Path of the file; empty: `secrets/nomad_<name>.jwt`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub filepath: String,
    /// The service of an identity of a service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_name: String,
    /// Validity of a token; zero: [`Self::TTL_DEFAULT`].
    #[serde(default, with = "duration_ns")]
    pub ttl: Duration,
}

impl WorkloadIdentity {
    /// Source: Nomad's default identity, which its API shows for every task.
    pub const DEFAULT_NAME: &str = "default";
    pub const DEFAULT_AUDIENCE: &str = "nomadproject.io";
    /// The shortest validity: a token is renewed at half of it, and no more often than each 10 s.
    pub const TTL_MIN: Duration = Duration::from_secs(20);
    /// The longest validity. It bounds the time for which the key that signed the token stays published.
    pub const TTL_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
    pub const TTL_DEFAULT: Duration = Duration::from_secs(24 * 3_600);

    /// Returns the identity that every task has.
    pub fn default_identity() -> Self {
        Self {
            name: Self::DEFAULT_NAME.to_owned(),
            audience: vec![Self::DEFAULT_AUDIENCE.to_owned()],
            ..Self::default()
        }
    }
}
