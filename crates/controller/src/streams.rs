//! Gateways' streams of heartbeats, and their silence.
//!
//! A gateway sends a message several times per TTL, also without heartbeats. When one falls silent or
//! disconnects, its nodes are not suspected before they have had the time to use another gateway; when
//! all are silent, the fault is here or in between, and no node is suspected.

use std::collections::BTreeMap;
use std::time::Duration;

use model::Timestamp;

/// The share of a TTL after which a stream is silent: five of a gateway's messages are missing.
const SILENCE_PER_TTL: u32 = 2;

/// One stream of a gateway; a gateway that reconnects has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// The open streams.
#[derive(Debug)]
pub(crate) struct Streams {
    silence: Duration,
    /// Stream → time of the last message, as counted by the [`crate::stall_adjusted_clock`], and whether it has
    /// been reported as silent since.
    open: BTreeMap<StreamId, (Timestamp, bool)>,
}

impl Streams {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self {
            silence: ttl / SILENCE_PER_TTL,
            open: BTreeMap::new(),
        }
    }

    pub(crate) fn open(&mut self, stream: StreamId, counted: Timestamp) {
        self.open.insert(stream, (counted, false));
    }

    /// Records a message; a closed stream stays closed.
    pub(crate) fn record_message(&mut self, stream: StreamId, counted: Timestamp) {
        if let Some(state) = self.open.get_mut(&stream) {
            *state = (counted, false);
        }
    }

    /// Returns whether the stream was open.
    pub(crate) fn close(&mut self, stream: StreamId) -> bool {
        self.open.remove(&stream).is_some()
    }

    pub(crate) fn count(&self) -> usize {
        self.open.len()
    }

    /// Tells whether at least one stream brings messages.
    pub(crate) fn has_live_stream(&self, counted: Timestamp) -> bool {
        let mut streams = self.open.values();
        streams.any(|(heard, _)| counted.since(*heard) <= self.silence)
    }

    /// Returns the streams that have fallen silent since the last call.
    pub(crate) fn newly_silent(&mut self, counted: Timestamp) -> Vec<StreamId> {
        let mut silent = Vec::new();
        for (stream, (heard, is_reported)) in &mut self.open {
            if !*is_reported && counted.since(*heard) > self.silence {
                *is_reported = true;
                silent.push(*stream);
            }
        }
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_silent_after_half_a_ttl_and_is_reported_once() {
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1_000);
        let (one, other) = (StreamId(1), StreamId(2));
        let mut streams = Streams::new(Duration::from_secs(10));
        assert!(!streams.has_live_stream(at(100)), "there is none");
        streams.open(one, at(100));
        streams.open(other, at(103));
        assert_eq!(streams.newly_silent(at(105)), []);
        assert_eq!(streams.newly_silent(at(106)), [one]);
        assert_eq!(streams.newly_silent(at(107)), []);
        assert!(streams.has_live_stream(at(108)));
        assert!(!streams.has_live_stream(at(109)));
        streams.record_message(one, at(110));
        assert!(streams.has_live_stream(at(110)));
        assert_eq!(streams.newly_silent(at(116)), [one, other]);
        assert!(streams.close(one));
        assert!(!streams.close(one));
        streams.record_message(one, at(117));
        assert_eq!(streams.count(), 1);
    }
}
