//! Tokens of Vault for tasks.

use serde::{Deserialize, Serialize};

use crate::template::ChangeMode;

/// A task's token of Vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vault {
    /// Without effect: the role of the login has the policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// Empty: the node's default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Empty: the node's default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the node's settings for a Vault cluster.
    pub cluster: String,
    /// The token becomes the variable `VAULT_TOKEN`.
    pub env: bool,
    /// The token becomes no file that the task can read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_file: bool,
    /// Reaction of the task to a new token; never [`ChangeMode::Script`].
    pub change_mode: ChangeMode,
    /// As in `SIGHUP`; needed by [`ChangeMode::Signal`] only.
    pub change_signal: String,
    /// The node does not renew the token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_token_expiration: bool,
}

impl Vault {
    pub const DEFAULT_CLUSTER: &str = "default";
}
