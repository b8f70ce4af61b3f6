//! References of groups and tasks to a Consul cluster.

use serde::{Deserialize, Serialize};

/// A Consul cluster, its namespace and partition. Without effect yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consul {
    pub cluster: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
}

impl Consul {
    pub const DEFAULT_CLUSTER: &str = "default";
}
