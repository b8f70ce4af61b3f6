//! Retention times of ended objects.

use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// The times for which objects are kept: jobs after their last registration, not after their end, and all
/// other objects after their last change. Source: Nomad's public defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Ended evaluations and allocations, and client sides whose allocation does not exist.
    pub eval: Duration,
    /// The same of batch and sysbatch jobs, whose results users look up later.
    pub batch_eval: Duration,
    /// Dead jobs with their evaluations and allocations, since their last registration, not since their end.
    pub job: Duration,
    pub deployment: Duration,
    /// Nodes that are down.
    pub node: Duration,
    /// Delete the results of dead batch jobs that were not stopped, because an operator requested
    /// it.
    pub is_forced: bool,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            eval: HOUR,
            batch_eval: 24 * HOUR,
            job: 4 * HOUR,
            deployment: HOUR,
            node: 24 * HOUR,
            is_forced: false,
        }
    }
}

impl Thresholds {
    /// Deletes every ended object, however young.
    pub fn forced() -> Self {
        Self {
            eval: Duration::ZERO,
            batch_eval: Duration::ZERO,
            job: Duration::ZERO,
            deployment: Duration::ZERO,
            node: Duration::ZERO,
            is_forced: true,
        }
    }
}
