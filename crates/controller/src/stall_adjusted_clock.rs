//! Clock of heartbeat deadlines: it counts the time in which a heartbeat could have arrived.
//!
//! A process that was stalled (starved of CPU, a paused machine) received nothing meanwhile, and
//! missed messages are still in its sockets when it resumes. So a stall does not count, nor does a
//! while after it. The same holds while no time counts at all (see [`crate::ControllerHealth`]).

use std::time::Duration;

use model::Timestamp;

/// Steps per TTL while nothing happens: the resolution at which stalls are seen.
const TICKS_PER_TTL: u32 = 10;
/// The share of a TTL after a stall in which time does not count: the process reads the messages in
/// its sockets, and gateways whose stream ended open another.
const SETTLING_PER_TTL: u32 = 4;

#[derive(Debug)]
pub(crate) struct StallAdjustedClock {
    tick: Duration,
    settling: Duration,
    /// The time of the last step; `None` before the first.
    stepped_at: Option<Timestamp>,
    /// Time does not count before this.
    settles_at: Timestamp,
    /// The sum of all time that did not count.
    lost: Duration,
    is_frozen: bool,
}

impl StallAdjustedClock {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self {
            tick: ttl / TICKS_PER_TTL,
            settling: ttl / SETTLING_PER_TTL,
            stepped_at: None,
            settles_at: Timestamp(0),
            lost: Duration::ZERO,
            is_frozen: false,
        }
    }

    /// Moves to `now`; `time_counts` tells whether the time since the last step counts. Returns the
    /// length of a stall that ends now.
    pub(crate) fn advance(&mut self, now: Timestamp, time_counts: bool) -> Option<Duration> {
        let before = self.stepped_at.unwrap_or(now);
        let passed = now.since(before);
        self.stepped_at = Some(before.max(now));
        // A wake-up is late by milliseconds; half a tick is more than the scheduler's share.
        let stall = (passed > self.tick + self.tick / 2).then_some(passed);
        if stall.is_some() {
            self.settles_at = now.plus(self.settling);
        }
        let is_settling = now < self.settles_at;
        self.is_frozen = is_settling || !time_counts;
        self.lost += match (self.is_frozen, stall) {
            (true, _) | (_, Some(_)) => passed,
            (false, None) => self.settles_at.since(before),
        };
        stall
    }

    /// Moves to `now` after a time in which there was nothing to count for.
    pub(crate) fn skip(&mut self, now: Timestamp) {
        let before = self.stepped_at.unwrap_or(now);
        self.lost += now.since(before);
        self.stepped_at = Some(before.max(now));
        self.is_frozen = true;
    }

    /// Returns the counted time at `now`.
    pub(crate) fn counted(&self, now: Timestamp) -> Timestamp {
        let nanos = u64::try_from(self.lost.as_nanos()).unwrap_or(u64::MAX);
        Timestamp(now.0.saturating_sub(nanos))
    }

    /// Returns when a counted time is reached if nothing more is lost; `None` while time does not
    /// count.
    pub(crate) fn when(&self, counted: Timestamp) -> Option<Timestamp> {
        (!self.is_frozen).then(|| counted.plus(self.lost))
    }

    /// Returns the time of the next step at the latest.
    pub(crate) fn next_tick(&self) -> Option<Timestamp> {
        Some(self.stepped_at?.plus(self.tick))
    }

    /// Tells whether time does not count at present.
    pub(crate) fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    pub(crate) fn lost(&self) -> Duration {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + ms)
    }

    /// Steps through `(time, time counts)` in milliseconds; returns the time counted since the first.
    fn counted(steps: &[(u64, bool)]) -> u64 {
        let mut clock = StallAdjustedClock::new(TTL);
        for (ms, time_counts) in steps {
            clock.advance(at(*ms), *time_counts);
        }
        let (first, last) = (steps[0].0, steps[steps.len() - 1].0);
        let counted = clock.counted(at(last)).since(at(first));
        u64::try_from(counted.as_millis()).unwrap()
    }

    #[test]
    fn time_counts_unless_the_process_was_stalled_or_had_no_view() {
        for (what, steps, expected) in [
            (
                "regular steps",
                &[(0, true), (1_000, true), (2_400, true)][..],
                2_400,
            ),
            (
                "many steps",
                &[(0, true), (1, true), (2, true), (900, true)],
                900,
            ),
            (
                "a stall",
                &[(0, true), (1_000, true), (61_000, true)],
                1_000,
            ),
            (
                "the end of settling",
                &[(0, true), (60_000, true), (61_000, true), (62_400, true)],
                0,
            ),
            (
                "after settling",
                &[
                    (0, true),
                    (60_000, true),
                    (61_000, true),
                    (62_000, true),
                    (63_000, true),
                    (64_000, true),
                ],
                1_500,
            ),
            (
                "a stall while it settles",
                &[
                    (0, true),
                    (60_000, true),
                    (61_000, true),
                    (91_000, true),
                    (92_000, true),
                    (93_000, true),
                ],
                0,
            ),
            (
                "no time counts",
                &[(0, true), (1_000, false), (2_000, true), (3_000, false)],
                1_000,
            ),
            (
                "a step back",
                &[(5_000, true), (4_000, true), (6_000, true)],
                1_000,
            ),
        ] {
            assert_eq!(counted(steps), expected, "{what}");
        }
    }

    #[test]
    fn a_stall_is_reported_with_its_length() {
        let mut clock = StallAdjustedClock::new(TTL);
        assert_eq!(clock.advance(at(0), true), None);
        assert_eq!(clock.advance(at(1_500), true), None);
        let stall = Duration::from_millis(1_501);
        assert_eq!(clock.advance(at(3_001), true), Some(stall));
        assert_eq!(clock.lost(), stall);
        assert_eq!(clock.when(at(9_000)), None, "it settles");
    }
}
