//! The revision to compact: the newest one that is older than the promised history.

use std::time::Duration;

use model::Timestamp;

use super::revisions::Revisions;

/// Compactions within the time of the history.
const PER_HISTORY: u32 = 10;
/// The part of the history that is kept when etcd is full. Then the history is all that can be given
/// up, and a service that was cut off for longer lists the store again.
const FULL_PART: u32 = 10;

/// The shortage of space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pressure {
    Calm,
    Scarce,
    Full,
}

/// The amount of history that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Event streams, and services that were cut off, resume within this time. Zero: nothing is
    /// compacted.
    pub kept: Duration,
    /// The same when space is scarce; a tenth of it when etcd is full. Never more than `kept`.
    pub kept_when_scarce: Duration,
}

impl History {
    /// Returns the least history that is ever kept.
    pub fn shortest(self) -> Duration {
        self.under(Pressure::Full)
    }

    fn under(self, pressure: Pressure) -> Duration {
        let scarce = self.kept_when_scarce.min(self.kept);
        match pressure {
            Pressure::Calm => self.kept,
            Pressure::Scarce => scarce,
            Pressure::Full => scarce / FULL_PART,
        }
    }
}

/// Paces compactions.
#[derive(Clone, Debug)]
pub struct Compaction {
    history: History,
    /// The time of the last compaction that was returned, and the pressure then.
    last: Option<(Timestamp, Pressure)>,
    /// The revision of the last successful one.
    compacted: u64,
}

impl Compaction {
    pub fn new(history: History) -> Self {
        Self {
            history,
            last: None,
            compacted: 0,
        }
    }

    /// Returns the revision to compact; `None`: not yet.
    pub fn next(
        &mut self,
        now: Timestamp,
        revisions: &Revisions,
        pressure: Pressure,
    ) -> Option<u64> {
        if self.history.kept.is_zero() {
            return None;
        }
        let age = self.history.under(pressure);
        // A shortage does not wait for the pause of a calm time.
        if let Some((last, before)) = self.last
            && now.since(last) < age / PER_HISTORY
            && pressure <= before
        {
            return None;
        }
        if revisions
            .newest()
            .is_some_and(|newest| newest < self.compacted)
        {
            // Another etcd: restored from a backup, for example.
            self.compacted = 0;
        }
        let revision = revisions.at_age(now, age)?;
        if revision <= self.compacted {
            return None;
        }
        self.last = Some((now, pressure));
        Some(revision)
    }

    /// Notes that etcd has no history before `revision`.
    pub fn compacted(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision);
    }
}
