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
    pub(super) slowness: u64,
    /// Lost transmissions per thousand.
    pub(super) loss: u32,
}

impl Link {
    pub(super) fn cut(&mut self) {
        self.cuts += 1;
    }

    /// Ends a cut. Returns the messages to send now.
    pub(super) fn repair(&mut self) -> VecDeque<Message> {
        self.cuts = self.cuts.saturating_sub(1);
        if self.cuts == 0 {
            std::mem::take(&mut self.held)
        } else {
            VecDeque::new()
        }
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
