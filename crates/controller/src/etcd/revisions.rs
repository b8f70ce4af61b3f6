//! The age of revisions: samples of etcd's revision over time.

use std::collections::VecDeque;
use std::time::Duration;

use model::Timestamp;

/// The most samples that are kept.
const MAX_SAMPLES: u32 = 512;

/// The revision of etcd at moments of the past. Every replica of the service keeps them, so that a new
/// leader need not wait for the whole history to pass.
#[derive(Clone, Debug)]
pub struct Revisions {
    /// The time between samples.
    every: Duration,
    /// The longest age that is asked for.
    oldest: Duration,
    /// Oldest first, revisions ascending.
    samples: VecDeque<(Timestamp, u64)>,
}

impl Revisions {
    /// Answers questions about ages from `shortest` to `longest`: half of `shortest` is its accuracy,
    /// unless that takes more samples than are kept.
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        let least = longest / (MAX_SAMPLES - 2);
        Self {
            every: (shortest / 2).max(least),
            oldest: longest,
            samples: VecDeque::new(),
        }
    }

    /// Notes that etcd is at `revision`; called often, it keeps few samples.
    pub fn record(&mut self, now: Timestamp, revision: u64) {
        if revision == 0 {
            return;
        }
        if let Some(&(at, newest)) = self.samples.back() {
            if revision < newest {
                // Another etcd: restored from a backup, for example.
                self.samples.clear();
            } else if now.since(at) < self.every {
                return;
            }
        }
        self.samples.push_back((now, revision));
        // The newest of the samples that are too old is the oldest that an answer needs.
        while self
            .samples
            .get(1)
            .is_some_and(|&(at, _)| now.since(at) >= self.oldest)
            || self.samples.len() > MAX_SAMPLES as usize
        {
            self.samples.pop_front();
        }
    }

    /// Returns the newest known revision that was current at least `age` ago.
    pub fn at_age(&self, now: Timestamp, age: Duration) -> Option<u64> {
        let old = self.samples.iter().rev();
        let mut old = old.filter(|(at, _)| now.since(*at) >= age);
        old.next().map(|(_, revision)| *revision)
    }

    pub fn newest(&self) -> Option<u64> {
        self.samples.back().map(|(_, revision)| *revision)
    }
}
