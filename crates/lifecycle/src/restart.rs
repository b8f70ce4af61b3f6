//! Restart policy: the decision whether and when an ended task restarts on this node.

use std::time::Duration;

use model::duration_ns;
use model::job::{RestartMode, RestartPolicy};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use crate::time::{Uptime, written};

/// The end of a run or of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Success,
    Failure,
    StartError { recoverable: bool },
}

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RestartDecision {
    Restart {
        delay: Duration,
        reason: String,
    },
    /// The task has succeeded.
    Done,
    GiveUp {
        reason: String,
    },
}

/// Counts restarts within fixed windows, the first of which starts with the task.
///
/// Stored with the allocation, so that a restart of the agent does not reset the count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RestartTracker {
    window_start: Uptime,
    count: u32,
}

impl RestartTracker {
    pub(crate) fn new(now: Uptime) -> Self {
        Self {
            window_start: now,
            count: 0,
        }
    }

    /// Restarts the window after a reboot, because its clock is gone.
    pub(crate) fn rebase(&mut self, now: Uptime) {
        *self = Self::new(now);
    }

    /// Counts an unrequested end of the task, and decides on the restart.
    pub(crate) fn decide(
        &mut self,
        now: Uptime,
        policy: &RestartPolicy,
        restart_on_success: bool,
        ended: Ended,
        rng: &mut dyn Rng,
    ) -> RestartDecision {
        let is_done = ended == Ended::Success && !restart_on_success;
        if policy.attempts == 0 {
            return if is_done {
                RestartDecision::Done
            } else {
                RestartDecision::GiveUp {
                    reason: "Policy allows no restarts".to_owned(),
                }
            };
        }
        if now > self.window_start.plus(policy.interval) {
            self.count = 0;
            self.window_start = now;
        }
        self.count = self.count.saturating_add(1);
        if ended == (Ended::StartError { recoverable: false }) {
            return RestartDecision::GiveUp {
                reason: "Error was unrecoverable".to_owned(),
            };
        }
        if is_done {
            return RestartDecision::Done;
        }
        if self.count <= policy.attempts {
            let reason = "Restart within policy".to_owned();
            return RestartDecision::Restart {
                delay: jittered(policy.delay, rng),
                reason,
            };
        }
        match policy.mode {
            RestartMode::Fail => RestartDecision::GiveUp {
                reason: exceeded(policy),
            },
            RestartMode::Delay => RestartDecision::Restart {
                delay: self.window_start.plus(policy.interval).since(now),
                reason: "Exceeded allowed attempts, waiting for the next interval".to_owned(),
            },
        }
    }
}

fn exceeded(policy: &RestartPolicy) -> String {
    format!(
        "Exceeded allowed attempts {} in interval {} and mode is \"fail\"",
        policy.attempts,
        written(policy.interval)
    )
}

/// Returns `delay` plus jitter of up to a quarter, to spread the restarts of tasks that failed together.
fn jittered(delay: Duration, rng: &mut dyn Rng) -> Duration {
    let spread = duration_ns::nanos(delay / 4);
    if spread == 0 {
        return delay;
    }
    delay.saturating_add(Duration::from_nanos(rng.random_range(0..spread)))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn policy(attempts: u32, mode: RestartMode) -> RestartPolicy {
        RestartPolicy {
            attempts,
            interval: Duration::from_secs(60),
            delay: Duration::from_secs(15),
            mode,
            render_templates: false,
        }
    }

    /// Plays (second, end) pairs against one tracker.
    fn play(
        policy: &RestartPolicy,
        on_success: bool,
        ends: &[(u64, Ended)],
    ) -> Vec<RestartDecision> {
        let mut tracker = RestartTracker::new(Uptime(0));
        let mut rng = StdRng::seed_from_u64(7);
        ends.iter()
            .map(|(second, ended)| {
                tracker.decide(
                    Uptime(second * SECOND),
                    policy,
                    on_success,
                    *ended,
                    &mut rng,
                )
            })
            .collect()
    }

    /// R: restart with the policy's delay, D: done, X: gave up, and W<seconds>: rest of a window.
    fn letters(verdicts: &[RestartDecision]) -> String {
        let letter = |verdict: &RestartDecision| match verdict {
            RestartDecision::Restart { delay, reason } if reason.starts_with("Exceeded") => {
                format!("W{} ", delay.as_secs())
            }
            RestartDecision::Restart { delay, .. } => {
                let low = Duration::from_secs(15);
                assert!((low..low * 5 / 4).contains(delay), "{delay:?}");
                "R ".to_owned()
            }
            RestartDecision::Done => "D ".to_owned(),
            RestartDecision::GiveUp { .. } => "X ".to_owned(),
        };
        verdicts
            .iter()
            .map(letter)
            .collect::<String>()
            .trim_end()
            .to_owned()
    }

    /// Name, policy, restart on success, (second, end) pairs, expected [`letters`].
    type Case = (
        &'static str,
        RestartPolicy,
        bool,
        &'static [(u64, Ended)],
        &'static str,
    );

    #[test]
    fn the_policy_as_a_table() {
        use Ended::{Failure, StartError, Success};
        const BROKEN: Ended = StartError { recoverable: false };
        const SHAKY: Ended = StartError { recoverable: true };
        let fail = |attempts| policy(attempts, RestartMode::Fail);
        let delay = |attempts| policy(attempts, RestartMode::Delay);
        let cases: &[Case] = &[
            (
                "n attempts are n restarts",
                fail(2),
                true,
                &[(1, Failure), (2, Failure), (3, Failure)],
                "R R X",
            ),
            (
                "a service's success counts",
                fail(2),
                true,
                &[(1, Success), (2, Success), (3, Failure)],
                "R R X",
            ),
            (
                "a batch task's success ends it",
                fail(2),
                false,
                &[(1, Failure), (2, Success)],
                "R D",
            ),
            (
                "no attempts and success",
                fail(0),
                false,
                &[(1, Success)],
                "D",
            ),
            (
                "no attempts and failure",
                fail(0),
                false,
                &[(1, Failure)],
                "X",
            ),
            (
                "no attempts, a service's success",
                fail(0),
                true,
                &[(1, Success)],
                "X",
            ),
            (
                "no attempts beats mode delay",
                delay(0),
                true,
                &[(1, Failure)],
                "X",
            ),
            (
                "an unrecoverable start is the end",
                fail(2),
                true,
                &[(1, BROKEN)],
                "X",
            ),
            (
                "a recoverable one costs an attempt",
                fail(1),
                true,
                &[(1, SHAKY), (2, SHAKY)],
                "R X",
            ),
            (
                "the window's end forgives",
                fail(1),
                true,
                &[(1, Failure), (61, Failure)],
                "R R",
            ),
            (
                "its last instant does not",
                fail(1),
                true,
                &[(1, Failure), (60, Failure)],
                "R X",
            ),
            (
                "the window is fixed, not sliding",
                fail(1),
                true,
                &[(59, Failure), (61, Failure)],
                "R R",
            ),
            (
                "a new window starts at its first end",
                fail(1),
                true,
                &[(70, Failure), (129, Failure)],
                "R X",
            ),
            (
                "mode delay waits for the window",
                delay(1),
                true,
                &[(10, Failure), (20, Failure), (60, Failure), (61, Failure)],
                "R W40 W0 R",
            ),
        ];
        for (name, policy, on_success, ends, want) in cases {
            assert_eq!(letters(&play(policy, *on_success, ends)), *want, "{name}");
        }
    }

    #[test]
    fn giving_up_names_the_attempts_and_the_interval() {
        let verdicts = play(
            &policy(1, RestartMode::Fail),
            true,
            &[(1, Ended::Failure), (2, Ended::Failure)],
        );
        let reason = "Exceeded allowed attempts 1 in interval 1m0s and mode is \"fail\"".to_owned();
        assert_eq!(verdicts[1], RestartDecision::GiveUp { reason });
    }

    #[test]
    fn jitter_covers_the_whole_quarter() {
        let mut rng = StdRng::seed_from_u64(1);
        let delay = Duration::from_secs(100);
        let drawn: Vec<u64> = (0..1000)
            .map(|_| jittered(delay, &mut rng).as_secs())
            .collect();
        assert!(drawn.iter().all(|seconds| (100..125).contains(seconds)));
        assert!((100..125).all(|seconds| drawn.contains(&seconds)));
        assert_eq!(jittered(Duration::ZERO, &mut rng), Duration::ZERO);
    }
}
