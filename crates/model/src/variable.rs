//! Variables: named sets of texts, such as passwords, that tasks and operators read.
//!
//! The items are sealed with a key-encryption key that only gateways have. The crate
//! `workload-identity` seals and opens them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::keyring::SealedText;
use crate::time::Timestamp;

/// Names of a variable's items with their values.
pub type VariableItems = BTreeMap<String, String>;

/// The name of a variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableKey {
    pub namespace: String,
    /// 1 to 128 characters, with slashes.
    pub path: String,
}

impl VariableKey {
    pub fn new(namespace: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            path: path.into(),
        }
    }
}

impl fmt::Display for VariableKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of namespace {:?}", self.path, self.namespace)
    }
}

/// A variable as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedVariable {
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
    /// The items as JSON.
    pub items: SealedText,
}
