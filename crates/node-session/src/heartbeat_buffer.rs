//! A gateway's buffer of heartbeats that were not passed on to the cluster-controller yet, and the state
//! of the relay.
//!
//! A set, not a queue: it holds each node at most once, however long the controller is away, and
//! drops heartbeats older than the TTL. Messages without heartbeats keep the relay confirmed while no
//! node sends any, and tell the controller that the gateway is alive.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use model::NodeId;

/// The largest number of unacknowledged messages: several seconds' worth. Beyond it the leader is
/// stuck, and heartbeats wait here.
const MAX_UNACKED: usize = 32;
/// Messages per TTL of a gateway without heartbeats: five of them fit into the time for which a relay
/// may be unconfirmed, so that one late answer refuses no heartbeat.
const KEEPALIVES_PER_TTL: u32 = 10;

/// Nodes with a recent heartbeat.
#[derive(Debug)]
pub struct HeartbeatBuffer {
    /// The time of the last heartbeat; not sent yet.
    pending: HashMap<NodeId, Instant>,
    /// Sent and not acknowledged, in the order of their sequence numbers.
    unacked: VecDeque<Message>,
    next_sequence: u64,
    /// The age at which a heartbeat is dropped.
    max_age: Duration,
    sent_at: Option<Instant>,
    /// The time at which the newest acknowledged message was sent; the start before the first.
    confirmed_at: Instant,
}

/// A message that the leader has not acknowledged.
#[derive(Debug)]
struct Message {
    sequence: u64,
    sent_at: Instant,
    nodes: Vec<(NodeId, Instant)>,
}

impl HeartbeatBuffer {
    /// `max_age` is the TTL of heartbeats.
    pub fn new(max_age: Duration, now: Instant) -> Self {
        Self {
            pending: HashMap::new(),
            unacked: VecDeque::new(),
            next_sequence: 1,
            max_age,
            sent_at: None,
            confirmed_at: now,
        }
    }

    /// Records a heartbeat.
    pub fn record(&mut self, node_id: NodeId, now: Instant) {
        self.pending.insert(node_id, now);
    }

    /// Returns the next message: a sequence number and the nodes in it, ordered by id. Without
    /// pending heartbeats there is an empty message once in a while. `None`: nothing is due, or too
    /// many messages are unacknowledged.
    pub fn next_message(&mut self, now: Instant) -> Option<(u64, Vec<NodeId>)> {
        let max_age = self.max_age;
        self.pending
            .retain(|_, heard| now.duration_since(*heard) <= max_age);
        let keepalive = self.max_age / KEEPALIVES_PER_TTL;
        let is_keepalive_due = self
            .sent_at
            .is_none_or(|sent| now.duration_since(sent) >= keepalive);
        let is_due = !self.pending.is_empty() || is_keepalive_due;
        if !is_due || self.unacked.len() >= MAX_UNACKED {
            return None;
        }
        let mut nodes: Vec<(NodeId, Instant)> = self.pending.drain().collect();
        nodes.sort_unstable_by_key(|(node_id, _)| *node_id);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let ids = nodes.iter().map(|(node_id, _)| *node_id).collect();
        self.sent_at = Some(now);
        self.unacked.push_back(Message {
            sequence,
            sent_at: now,
            nodes,
        });
        Some((sequence, ids))
    }

    /// Notes that all messages up to `sequence` have arrived.
    pub fn acked(&mut self, sequence: u64) {
        while let Some(message) = self.unacked.front() {
            if message.sequence > sequence {
                return;
            }
            self.confirmed_at = message.sent_at.max(self.confirmed_at);
            self.unacked.pop_front();
        }
    }

    /// Notes that the stream has ended: unacknowledged heartbeats are pending again, and the next
    /// message is due at once.
    pub fn disconnected(&mut self) {
        for (node_id, heard) in self.unacked.drain(..).flat_map(|message| message.nodes) {
            let newest = self.pending.entry(node_id).or_insert(heard);
            *newest = heard.max(*newest);
        }
        self.sent_at = None;
    }

    /// Returns the time since the sending of the newest acknowledged message.
    pub fn unconfirmed_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.confirmed_at)
    }

    /// Returns the number of nodes whose heartbeat waits.
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }
}

#[cfg(test)]
mod tests;
