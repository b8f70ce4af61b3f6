//! Counters of the writer, for the agent to register.

use prometheus_client::metrics::counter::Counter;

#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub commits: Counter,
    /// Failed tries of a commit.
    pub failures: Counter,
}
