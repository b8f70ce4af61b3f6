//! Clocks of the runners: wall time and uptime, and conversion of deadlines to tokio's instants.

use std::time::Duration;

use lifecycle::{Now, Uptime};
use model::Timestamp;
use nix::time::{ClockId, clock_gettime};
use service_kit::Clock;
use tokio::time::Instant;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Clocks {
    wall: Clock,
    /// The machine's uptime at `started`.
    uptime_at_start: Duration,
    started: Instant,
}

impl Clocks {
    /// Reads the machine's uptime once. From then on it follows tokio's clock, which tests pause.
    pub fn new(wall: Clock) -> Self {
        Self {
            wall,
            uptime_at_start: machine_uptime(),
            started: Instant::now(),
        }
    }

    /// The wall clock alone.
    pub fn wall_clock(&self) -> Clock {
        self.wall.clone()
    }

    pub fn wall(&self) -> Timestamp {
        Timestamp(self.wall.now())
    }

    pub fn now(&self) -> Now {
        let uptime = self.uptime_at_start + self.started.elapsed();
        Now {
            uptime: Uptime::default().plus(uptime),
            wall: self.wall(),
        }
    }

    /// Returns the instant at which the uptime is `uptime`.
    pub fn instant(&self, uptime: Uptime) -> Instant {
        let start = Uptime::default().plus(self.uptime_at_start);
        self.started + uptime.since(start)
    }
}

/// Returns the time since boot, suspend included.
fn machine_uptime() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map(Duration::from)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_uptime_follows_tokios_clock() {
        let clocks = Clocks::new(Clock::real());
        let before = clocks.now().uptime;
        assert!(
            before > Uptime::default(),
            "the machine has been up for a while"
        );
        tokio::time::advance(Duration::from_secs(5)).await;
        let after = clocks.now().uptime;
        assert_eq!(after.since(before), Duration::from_secs(5));
        assert_eq!(clocks.instant(after), Instant::now());
        let later = after.plus(Duration::from_secs(3));
        assert_eq!(
            clocks.instant(later) - Instant::now(),
            Duration::from_secs(3)
        );
    }
}
