//! What a machine wants done.

use std::time::Duration;

/// One thing for the loop to do, after the state that asks for it has been stored.
///
/// A crash between the two is why each effect can be performed twice: attempts have numbers, and
/// stopping or forgetting what is gone is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Build the allocation's directories; answered by [`crate::Event::PrerunDone`].
    Prerun {
        /// They were built by an earlier run of the agent: that they are missing is an error.
        must_exist: bool,
    },
    /// Prepare the task and start its process; answered by [`crate::Event::Started`] or
    /// [`crate::Event::StartFailed`], later by [`crate::Event::Exited`].
    Start { task: String, attempt: u32 },
    /// A start that is under way is not wanted any more; it is still answered.
    CancelStart { task: String, attempt: u32 },
    /// Find the process of this attempt; answered by [`crate::Event::Recovered`],
    /// [`crate::Event::Exited`] or [`crate::Event::NotRecovered`].
    Recover { task: String, attempt: u32 },
    /// Ask the process to end, and make it after `grace`; answered by [`crate::Event::Exited`] or
    /// [`crate::Event::StopFailed`]. An empty signal is the driver's choice.
    Stop {
        task: String,
        attempt: u32,
        signal: String,
        grace: Duration,
    },
    /// Remove what the driver keeps of this attempt: its end has been stored.
    Forget { task: String, attempt: u32 },
    /// What servers know is out of date: send [`crate::AllocRunner::client`].
    Report,
    /// Nothing of it runs, and nothing will.
    Ended,
}
