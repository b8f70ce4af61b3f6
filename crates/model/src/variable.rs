//! Variables: named sets of texts, such as passwords, that tasks and operators read.
//!
//! The items are sealed with a key-encryption key that only gateways have. The crate
//! `workload-identity` seals and opens them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration_ns;
use crate::job::Job;
use crate::keyring::SealedText;
use crate::time::Timestamp;

/// The path of variables that every task of a namespace reads. Source: Nomad's rule.
const JOBS_PATH: &str = "nomad/jobs";

/// Returns the paths of the variables that a task of the job reads without further rights, from the one of all
/// jobs to the one of the task. Children read those of their parent.
pub fn variable_paths(job: &Job, task_group: &str, task: &str) -> [String; 4] {
    let name = match job.parent_id.as_str() {
        "" => job.id.as_str(),
        parent => parent,
    };
    let of_job = format!("{JOBS_PATH}/{name}");
    let of_group = format!("{of_job}/{task_group}");
    let of_task = format!("{of_group}/{task}");
    [JOBS_PATH.to_owned(), of_job, of_group, of_task]
}

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

/// The lock of a variable, as it is stored twice: under a lease of `ttl`, and under one that lives longer by
/// `delay`. The first is the holder's right to write, the second keeps others out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableLock {
    /// Chosen by the holder, unique for each acquisition.
    pub id: String,
    #[serde(with = "duration_ns")]
    pub ttl: Duration,
    #[serde(with = "duration_ns")]
    pub delay: Duration,
    pub acquired_at: Timestamp,
    /// The lease of the holder's key.
    pub holder_lease: i64,
    /// The lease of the delay's key.
    pub delay_lease: i64,
}

/// A variable as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedVariable {
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
    /// The items as JSON.
    pub items: SealedText,
}
