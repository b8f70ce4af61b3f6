//! How long the broker waits for whom.

use std::time::Duration;

/// The broker's times and limits. [`Config::default`] is what a cluster runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a worker may keep an evaluation without a word.
    pub nack_timeout: Duration,
    /// Deliveries before an evaluation counts as failed.
    pub delivery_limit: u8,
    /// How long the first evaluation given back waits for its next delivery.
    pub initial_nack_delay: Duration,
    /// How long each further one waits, times the deliveries before the last.
    pub subsequent_nack_delay: Duration,
    /// The least wait of the follow-up of a failed evaluation.
    pub follow_up_delay: Duration,
    /// What is added to it at most, evenly drawn, so that a wave of failures does not come back as
    /// one.
    pub follow_up_spread: Duration,
    /// How long what a lost session had may stay unanswered: a worker that lives answers by
    /// unary call within it, or extends.
    pub session_grace: Duration,
    /// How long after its ack the outcome of an evaluation may take to be seen in the store.
    pub outcome_timeout: Duration,
    /// How often evaluations that lost too many races for a place are tried again.
    pub conflict_retry: Duration,
    /// How long superseded evaluations are gathered before they are cancelled together.
    pub cancel_window: Duration,
    /// How long a write may go unseen before it is asked for again.
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
            // Nobody waits for these writes, so a quarter of a second gathers a burst of acks.
            cancel_window: Duration::from_millis(250),
            // Twice the deadline of a store transaction.
            write_retry: Duration::from_secs(10),
        }
    }
}

impl Config {
    /// Returns how long an evaluation waits that was given back after `deliveries` deliveries.
    pub(crate) fn nack_delay(&self, deliveries: u8) -> Duration {
        match deliveries {
            0 | 1 => self.initial_nack_delay,
            n => self.subsequent_nack_delay * u32::from(n - 1),
        }
    }
}

/// Timers that one step fires at most, so that a million delayed evaluations that are due at once
/// do not keep acks waiting: 10,000 take about 10 ms.
pub(crate) const TIMERS_PER_STEP: usize = 10_000;

/// Evaluations that one transaction cancels at most. A store transaction takes 1,000 operations;
/// half of that leaves room, and 500 evaluations of 1 kB stay below its 1 MiB.
pub const CANCEL_BATCH: usize = 500;

/// Credit that a session can have at most: more than any worker can use within a nack timeout
/// would only let one worker hoard what others could do.
pub const CREDIT_MAX: u32 = 1_024;

/// How long the index at which a class last gained capacity is remembered. An evaluation is
/// blocked within seconds of its snapshot; Nomad keeps 15 minutes too.
pub(crate) const CAPACITY_MEMORY: Duration = Duration::from_secs(15 * 60);
