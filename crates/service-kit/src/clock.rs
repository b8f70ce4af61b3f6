//! Clocks, read at the edges only: deciders take the time as an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use tokio::time::Instant;

/// The wall clock, for timestamps; never for deadlines, which are `tokio::time::Instant`s.
/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// `None`: the machine's own clock.
    manual: Option<Arc<AtomicU64>>,
}

impl Clock {
    pub fn real() -> Self {
        Self::default()
    }

    /// Makes a clock that shows the time in `nanos`, in Unix nanoseconds; a test moves it.
    pub fn manual(nanos: Arc<AtomicU64>) -> Self {
        Self {
            manual: Some(nanos),
        }
    }

    /// Returns Unix nanoseconds, as in `CreateTime`. A clock set before 1970 reads 0, one past
    /// 2554 the largest number.
    pub fn now(&self) -> u64 {
        match &self.manual {
            Some(nanos) => nanos.load(Ordering::SeqCst),
            None => nanos(machine_time()),
        }
    }
}

/// Sleeps until `deadline`; without one, forever.
pub async fn sleep_until_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Unix nanoseconds without steps: the wall clock at one moment, advanced by a monotonic clock. For
/// leaders with timers: a step of the wall clock must not make all of them late. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SteadyClock {
    clock: Clock,
    began: u64,
    started: Instant,
}

impl SteadyClock {
    /// Starts at the time of `clock`. A manual clock is followed as it is.
    pub fn start(clock: Clock) -> Self {
        Self {
            began: clock.now(),
            started: Instant::now(),
            clock,
        }
    }

    /// Returns Unix nanoseconds.
    pub fn now(&self) -> u64 {
        match self.clock.manual {
            Some(_) => self.clock.now(),
            None => self.began.saturating_add(nanos(self.started.elapsed())),
        }
    }

    /// Returns when it will show `at`; what is past is now.
    pub fn instant(&self, at: u64) -> Instant {
        Instant::now() + Duration::from_nanos(at.saturating_sub(self.now()))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the machine's clock"
)]
fn machine_time() -> Duration {
    std::time::SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_clock_shows_unix_nanoseconds() {
        let year_2020 = 1_577_836_800_000_000_000;
        assert!(Clock::real().now() > year_2020);
    }

    #[test]
    fn every_clone_of_a_manual_clock_follows_its_hand() {
        let hand = Arc::new(AtomicU64::new(5));
        let clock = Clock::manual(Arc::clone(&hand));
        let clone = clock.clone();
        hand.store(7, Ordering::SeqCst);
        assert_eq!((clock.now(), clone.now()), (7, 7));
    }

    #[test]
    fn a_steady_clock_starts_at_the_wall_clock_and_goes_on_by_itself() {
        let wall = Clock::real();
        let before = wall.now();
        let steady = SteadyClock::start(wall);
        let shown = steady.now();
        assert!(shown >= before, "{shown} after {before}");
        let minute = Duration::from_secs(60);
        let in_a_minute = steady.instant(shown + 60_000_000_000) - Instant::now();
        assert!(in_a_minute <= minute && in_a_minute > minute / 2);
        assert!(
            steady.instant(before) <= Instant::now(),
            "what is past is now"
        );
        assert!(steady.now() > shown);

        let hand = Arc::new(AtomicU64::new(5));
        let steady = SteadyClock::start(Clock::manual(Arc::clone(&hand)));
        hand.store(9, Ordering::SeqCst);
        assert_eq!(steady.now(), 9);
    }
}
