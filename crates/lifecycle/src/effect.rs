//! Effects: the outputs of the machine, for the loop to perform.

use std::time::Duration;

/// One effect, performed after the state is stored.
///
/// Effects are idempotent, because a crash may come between the two: attempts have numbers, and
/// stopping or forgetting a missing process is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Build the allocation's directories; answered by [`crate::Event::PrerunDone`].
    Prerun {
        /// An earlier run of the agent created them, so missing ones are an error.
        must_exist: bool,
    },
    /// Prepare the task and start its process; answered by [`crate::Event::Started`] or
    /// [`crate::Event::StartFailed`], later by [`crate::Event::Exited`].
    Start { task: String, attempt: u32 },
    /// Cancel a start in progress; it is still answered.
    CancelStart { task: String, attempt: u32 },
    /// Find the process of this attempt; answered by [`crate::Event::Recovered`],
    /// [`crate::Event::Exited`] or [`crate::Event::NotRecovered`].
    Recover { task: String, attempt: u32 },
    /// Signal the process to end, and kill it after `grace`; answered by [`crate::Event::Exited`] or
    /// [`crate::Event::StopFailed`]. An empty signal is the driver's choice.
    Stop {
        task: String,
        attempt: u32,
        signal: String,
        grace: Duration,
    },
    /// Remove the driver's records of this attempt; its end is stored.
    Forget { task: String, attempt: u32 },
    /// The servers' state is outdated: send [`crate::AllocRunner::client`].
    Report,
    /// No task runs, and none will.
    Ended,
}
