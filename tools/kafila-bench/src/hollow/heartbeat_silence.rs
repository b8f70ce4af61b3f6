//! The heartbeats that a node has sent: whether the servers had to take it for alive.

use super::node::Millis;

/// Times to live for which a silence counts: a decision about it may come after the next heartbeat.
const REMEMBERED: u64 = 3;

/// The heartbeats of one node.
#[derive(Debug, Default)]
pub(super) struct HeartbeatSilence {
    sent_at: Millis,
    /// The longest silence of the latest ones, with its end.
    longest: Option<(Millis, Millis)>,
}

impl HeartbeatSilence {
    /// Begins anew with a registration.
    pub(super) fn register(&mut self, now: Millis) {
        self.sent_at = now;
        self.longest = None;
    }

    /// Records a heartbeat.
    pub(super) fn send(&mut self, now: Millis, ttl: Millis) {
        let silence = now.saturating_sub(self.sent_at);
        self.sent_at = now;
        let is_longest = self.longest.is_none_or(|(longest, ended)| {
            silence >= longest || now.saturating_sub(ended) > ttl * REMEMBERED
        });
        if is_longest {
            self.longest = Some((silence, now));
        }
    }

    /// Returns the longest silence that the servers may still answer.
    pub(super) fn silence(&self) -> Millis {
        self.longest.map_or(0, |(silence, _)| silence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_silence_counts_until_three_times_to_live_later() {
        let mut heartbeats = HeartbeatSilence::default();
        heartbeats.register(1_000);
        for (now, silence) in [
            (6_000, 5_000),
            (19_500, 13_500),
            (24_000, 13_500),
            (49_500, 26_000 - 500),
            (54_000, 25_500),
            (80_000, 26_000),
        ] {
            heartbeats.send(now, 10_000);
            assert_eq!(heartbeats.silence(), silence, "at {now}");
        }
        for now in [84_000, 88_000, 92_000, 96_000, 100_000, 104_000, 108_000] {
            heartbeats.send(now, 10_000);
            assert_eq!(heartbeats.silence(), 26_000, "at {now}");
        }
        heartbeats.send(112_000, 10_000);
        assert_eq!(heartbeats.silence(), 4_000);
        heartbeats.send(125_000, 10_000);
        heartbeats.register(126_000);
        assert_eq!(heartbeats.silence(), 0);
    }
}
