//! Quiescence: a rendering waits until its data has not changed for a while.

use std::time::Duration;

/// The wait of one template (`wait { min max }`). Times are since a start that the caller chooses.
#[derive(Clone, Copy, Debug)]
pub struct Debounce {
    min: Duration,
    max: Duration,
    /// The first and the last change since the last rendering.
    changes: Option<(Duration, Duration)>,
}

impl Debounce {
    /// Renders `min` after the last change, and at most `max` after the first.
    pub fn new(min: Duration, max: Duration) -> Self {
        Self {
            min,
            max: max.max(min),
            changes: None,
        }
    }

    pub fn changed(&mut self, now: Duration) {
        let first = self.changes.map_or(now, |(first, _)| first);
        self.changes = Some((first, now));
    }

    /// The time of the rendering; `None`: nothing has changed.
    pub fn ready_at(&self) -> Option<Duration> {
        let (first, last) = self.changes?;
        Some((last + self.min).min(first + self.max))
    }

    /// Returns whether the time has come, and if so begins anew.
    pub fn take(&mut self, now: Duration) -> bool {
        let is_ready = self.ready_at().is_some_and(|at| at <= now);
        if is_ready {
            self.changes = None;
        }
        is_ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_rendering_waits_for_the_last_change_but_not_for_ever() {
        let mut debounce = Debounce::new(s(5), s(12));
        assert_eq!(debounce.ready_at(), None);
        assert!(!debounce.take(s(100)));
        debounce.changed(s(100));
        assert_eq!(debounce.ready_at(), Some(s(105)));
        debounce.changed(s(104));
        assert!(!debounce.take(s(105)));
        assert_eq!(debounce.ready_at(), Some(s(109)));
        debounce.changed(s(108));
        assert_eq!(debounce.ready_at(), Some(s(112)));
        assert!(debounce.take(s(112)));
        assert_eq!(debounce.ready_at(), None);
    }

    #[test]
    fn a_maximum_below_the_minimum_is_the_minimum() {
        let mut debounce = Debounce::new(s(5), s(0));
        debounce.changed(s(1));
        assert_eq!(debounce.ready_at(), Some(s(6)));
    }
}
