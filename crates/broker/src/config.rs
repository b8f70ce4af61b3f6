//! Timeouts, delays and limits of the broker.

use std::time::Duration;

/// The broker's times and limits. [`Config::default`] has the defaults of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The time for which a worker may hold an evaluation without extending it.
    pub nack_timeout: Duration,
    /// Deliveries before an evaluation counts as failed.
    pub delivery_limit: u8,
    /// The redelivery delay of an evaluation after its first delivery has failed: the worker nacked it, or
    /// did not answer in time.
    pub initial_nack_delay: Duration,
    /// The unit of later redelivery delays: after the n-th delivery has failed, from the second on, the
    /// broker waits n - 1 times this delay.
    pub subsequent_nack_delay: Duration,
    /// The minimum delay of the follow-up of a failed evaluation.
    pub follow_up_delay: Duration,
    /// The maximum random addition to it, uniformly distributed, which spreads the follow-ups of a
    /// wave of failures.
    pub follow_up_spread: Duration,
    /// The time in which a worker must answer for its evaluations once its stream has broken: it
    /// acks, nacks or extends them by unary calls.
    pub session_grace: Duration,
    /// The time from an evaluation's ack until the store must show its outcome.
    pub outcome_timeout: Duration,
    /// The interval of retries for evaluations that lost too many placement races.
    pub conflict_retry: Duration,
    /// The time for which superseded evaluations are batched before they are canceled.
    pub cancel_window: Duration,
    /// The time in which a write must show in the store before it is requested again.
    pub write_retry: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // Nomad's `eval_nack_timeout`, `eval_delivery_limit` and delays: operators know them.
            nack_timeout: Duration::from_secs(60),
            delivery_limit: 3,
            initial_nack_delay: Duration::from_secs(1),
            subsequent_nack_delay: Duration::from_secs(20),
            follow_up_delay: Duration::from_secs(60),
            follow_up_spread: Duration::from_secs(300),
            conflict_retry: Duration::from_secs(60),
            // A plan takes well under a second; five give a slow one and a reconnect room.
            session_grace: Duration::from_secs(5),
            // The worker acks after the commit, which our watch sees within milliseconds; ten
            // seconds is a watch that has to start over.
            outcome_timeout: Duration::from_secs(10),
            // No caller waits for these writes, and a quarter of a second batches a burst of acks.
            cancel_window: Duration::from_millis(250),
            // Twice the deadline of a store transaction.
            write_retry: Duration::from_secs(10),
        }
    }
}

impl Config {
    /// Returns the redelivery delay of an evaluation of which `deliveries` deliveries have failed.
    pub(crate) fn nack_delay(&self, deliveries: u8) -> Duration {
        match deliveries {
            0 | 1 => self.initial_nack_delay,
            n => self.subsequent_nack_delay * u32::from(n - 1),
        }
    }
}

/// Timers that one step fires at most, so that a million evaluations due at once do not delay acks:
/// 10,000 take about 10 ms.
pub(crate) const TIMERS_PER_STEP: usize = 10_000;

/// Evaluations that one transaction cancels at most. A store transaction takes 1,000 operations;
/// half of that leaves room, and 500 evaluations of 1 kB stay below its 1 MiB.
pub const CANCEL_BATCH: usize = 500;

/// The maximum credit of a session. More than a worker can use within a nack timeout would take
/// evaluations away from other workers.
pub const CREDIT_MAX: u32 = 1_024;

/// The time for which the index of a class's last capacity gain is remembered. An evaluation is
/// blocked within seconds of its snapshot; Nomad keeps 15 minutes too.
pub(crate) const CAPACITY_MEMORY: Duration = Duration::from_secs(15 * 60);
