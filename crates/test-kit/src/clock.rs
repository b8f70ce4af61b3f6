//! A wall clock that stands still until a test moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::Timestamp;

/// Cheap to clone; clones show the same time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl Default for ManualClock {
    /// Starts on 1 January 2026.
    fn default() -> Self {
        Self::at(Timestamp::from_millis(1_767_225_600_000))
    }
}

impl ManualClock {
    pub fn at(time: Timestamp) -> Self {
        Self {
            nanos: Arc::new(AtomicU64::new(time.0)),
        }
    }

    pub fn now(&self) -> Timestamp {
        Timestamp(self.nanos.load(Ordering::SeqCst))
    }

    pub fn set(&self, time: Timestamp) {
        self.nanos.store(time.0, Ordering::SeqCst);
    }

    pub fn advance(&self, duration: Duration) {
        self.set(self.now().plus(duration));
    }

    /// Returns the hand itself, for `service_kit::Clock::manual`.
    pub fn hand(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.nanos)
    }
}
