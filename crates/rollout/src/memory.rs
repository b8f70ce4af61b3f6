//! The memory of one active deployment.

use model::{AllocId, DeploymentHealth, Timestamp};
use rustc_hash::FxHashMap;

/// The memory of an active deployment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// The last health of each allocation, to tell a change from a repetition.
    pub(crate) verdicts: FxHashMap<AllocId, DeploymentHealth>,
    /// The revision of the newest health change: the scheduler has to see it.
    pub(crate) health_index: u64,
    /// The end of the current batch of health reports.
    pub(crate) eval_due: Option<Timestamp>,
    pub(crate) next_at: Option<Timestamp>,
}
