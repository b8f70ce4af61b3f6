//! A service check as readers see it, and the handles of running checks.

use std::collections::HashMap;

use model::Timestamp;
use tokio::task::AbortHandle;

/// The runs of one allocation: epoch of the watch -> its tokio task.
#[derive(Debug, Default)]
pub(crate) struct CheckRuns(pub(crate) HashMap<u64, AbortHandle>);

/// The state of a check, for readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckView {
    pub id: String,
    /// `healthiness`: deployments wait for it. `readiness`: they do not.
    pub mode: &'static str,
    /// `pending`, `success` or `failure`.
    pub status: &'static str,
    /// Status of the HTTP response; 0: none.
    pub code: u16,
    pub output: String,
    /// Time of the newest result; never: there is none.
    pub time: Timestamp,
    pub group: String,
    /// Empty: the check is the group's.
    pub task: String,
    pub service: String,
    pub check: String,
}
