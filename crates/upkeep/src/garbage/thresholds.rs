//! How long what is over is kept.

use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// How long after its last change an object may go. Source: Nomad's public defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Evaluations, and the allocations that have ended.
    pub eval: Duration,
    /// The same of batch and sysbatch work, whose results people come to look for.
    pub batch_eval: Duration,
    /// Dead jobs, since they were registered.
    pub job: Duration,
    pub deployment: Duration,
    /// Nodes that are down.
    pub node: Duration,
    /// A dead batch job's results may go although it was not stopped: an operator asked for it.
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
    /// Everything that is over goes, however young.
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
