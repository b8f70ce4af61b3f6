//! One direction between two machines: delay, loss and cuts of messages.

use std::collections::VecDeque;

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::message::Message;

/// Shortest retransmission timeout of TCP, in milliseconds.
const RETRANSMISSION: u64 = 200;

/// One direction between two machines.
#[derive(Default)]
pub(super) struct Link {
    /// Number of active cuts; messages sent meanwhile are retransmitted after the last one.
    cuts: u32,
    held: VecDeque<Message>,
    /// Upper bound of the additional delay of a message, in milliseconds.
    slowness: u64,
    /// Lost transmissions per thousand.
    loss: u32,
    /// The time of the last repair, in milliseconds.
    repaired_at: u64,
}

impl Link {
    pub(super) fn cut(&mut self) {
        self.cuts += 1;
    }

    /// Ends a cut at `now`. Returns the messages to send.
    pub(super) fn repair(&mut self, now: u64) -> VecDeque<Message> {
        self.cuts = self.cuts.saturating_sub(1);
        self.repaired_at = now;
        if self.cuts == 0 {
            std::mem::take(&mut self.held)
        } else {
            VecDeque::new()
        }
    }

    /// Sets the additional delay in milliseconds, and the losses per thousand.
    pub(super) fn impair(&mut self, slowness: u64, loss: u32, now: u64) {
        (self.slowness, self.loss) = (slowness, loss);
        self.repaired_at = now;
    }

    /// Returns since when messages pass without faults; `None`: they do not at present.
    pub(super) fn sound_since(&self) -> Option<u64> {
        let is_sound = self.cuts == 0 && self.slowness == 0 && self.loss == 0;
        is_sound.then_some(self.repaired_at)
    }

    /// Returns the message with its delay; `None`: it is held back.
    pub(super) fn send(&mut self, message: Message, rng: &mut StdRng) -> Option<(Message, u64)> {
        if self.cuts > 0 {
            self.held.push_back(message);
            return None;
        }
        // Mostly within a rack, sometimes across a building.
        let mut delay = match rng.random_range(0..20_u32) {
            0 => rng.random_range(2..=10),
            _ => rng.random_range(1..=2),
        };
        if self.slowness > 0 {
            delay += rng.random_range(0..=self.slowness);
        }
        let mut wait = RETRANSMISSION;
        while self.loss > 0 && rng.random_range(0..1_000) < self.loss && wait < 5_000 {
            delay += wait;
            wait *= 2;
        }
        Some((message, delay))
    }
}
