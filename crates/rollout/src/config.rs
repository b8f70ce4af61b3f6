//! Settings of rollouts.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The time for which health reports are batched before an evaluation is created.
    pub health_window: Duration,
}

impl Default for Config {
    fn default() -> Self {
        // Allocations that start together become healthy within a batch of reports or two (50 ms
        // each). A quarter of a second batches them without a noticeable delay.
        Self {
            health_window: Duration::from_millis(250),
        }
    }
}
