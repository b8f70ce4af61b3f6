//! Heartbeats that were not passed on to the cluster-controller yet.
//!
//! A set, not a queue: it holds each node at most once, however long the controller is away, and
//! drops heartbeats older than the TTL.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::NodeId;
use tokio::time::Instant;

/// How many messages may be unacknowledged: several seconds' worth. Beyond it the leader is stuck, and
/// heartbeats wait here.
const MAX_UNACKED: usize = 32;

/// Nodes with a recent heartbeat.
#[derive(Debug)]
pub struct HeartbeatBuffer {
    /// The time of the last heartbeat; not sent yet.
    pending: HashMap<NodeId, Instant>,
    /// Sent and not acknowledged, by sequence number.
    unacked: VecDeque<(u64, Vec<(NodeId, Instant)>)>,
    next_sequence: u64,
    /// The age at which a heartbeat is dropped.
    max_age: Duration,
}

impl HeartbeatBuffer {
    pub fn new(max_age: Duration) -> Self {
        Self {
            pending: HashMap::new(),
            unacked: VecDeque::new(),
            next_sequence: 1,
            max_age,
        }
    }

    pub fn record(&mut self, node_id: NodeId, now: Instant) {
        self.pending.insert(node_id, now);
    }

    /// Returns the next message: a sequence number and the nodes in it, ordered by id; `None` when
    /// nothing is pending or too many messages are unacknowledged.
    pub fn next_message(&mut self, now: Instant) -> Option<(u64, Vec<NodeId>)> {
        let max_age = self.max_age;
        self.pending
            .retain(|_, heard| now.duration_since(*heard) <= max_age);
        if self.pending.is_empty() || self.unacked.len() >= MAX_UNACKED {
            return None;
        }
        let mut nodes: Vec<(NodeId, Instant)> = self.pending.drain().collect();
        nodes.sort_unstable_by_key(|(node_id, _)| *node_id);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let ids = nodes.iter().map(|(node_id, _)| *node_id).collect();
        self.unacked.push_back((sequence, nodes));
        Some((sequence, ids))
    }

    /// Notes that all messages up to `sequence` have arrived.
    pub fn acked(&mut self, sequence: u64) {
        while self
            .unacked
            .front()
            .is_some_and(|(sent, _)| *sent <= sequence)
        {
            self.unacked.pop_front();
        }
    }

    /// Notes that the stream has ended: unacknowledged heartbeats are pending again.
    pub fn disconnected(&mut self) {
        for (node_id, heard) in self.unacked.drain(..).flat_map(|(_, nodes)| nodes) {
            let newest = self.pending.entry(node_id).or_insert(heard);
            *newest = heard.max(*newest);
        }
    }

    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }
}

/// The buffer that handlers and the liveness loop share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Heartbeats(Arc<Mutex<HeartbeatBuffer>>);

impl Heartbeats {
    pub fn new(max_age: Duration) -> Self {
        Self(Arc::new(Mutex::new(HeartbeatBuffer::new(max_age))))
    }

    pub fn lock(&self) -> MutexGuard<'_, HeartbeatBuffer> {
        // A panic leaves nothing half done: each use is one step of a collection.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn node(number: u128) -> NodeId {
        NodeId::from_random(number)
    }

    #[test]
    fn two_heartbeats_of_a_node_are_passed_on_once() {
        let (mut heard, now) = (HeartbeatBuffer::new(TTL), Instant::now());
        heard.record(node(1), now);
        heard.record(node(1), now);
        assert_eq!(heard.next_message(now), Some((1, vec![node(1)])));
        assert_eq!(heard.next_message(now), None);
    }

    #[test]
    fn unacknowledged_heartbeats_are_sent_to_the_next_leader() {
        let (mut heard, now) = (HeartbeatBuffer::new(TTL), Instant::now());
        for number in 1..=3 {
            heard.record(node(number), now);
            heard.next_message(now);
        }
        heard.acked(1);
        heard.disconnected();
        let mut again = vec![node(2), node(3)];
        again.sort_unstable();
        assert_eq!(heard.next_message(now), Some((4, again)));
    }

    #[test]
    fn a_repeated_heartbeat_is_as_old_as_the_newest() {
        let (mut heard, now) = (HeartbeatBuffer::new(TTL), Instant::now());
        let later = now + TTL / 2;
        heard.record(node(1), now);
        heard.next_message(now);
        heard.record(node(1), later);
        heard.disconnected();
        assert_eq!(heard.next_message(later + TTL), Some((2, vec![node(1)])));

        heard.disconnected();
        assert_eq!(heard.next_message(later + TTL * 2), None);
    }

    #[test]
    fn an_old_heartbeat_is_not_passed_on() {
        let (mut heard, now) = (HeartbeatBuffer::new(TTL), Instant::now());
        heard.record(node(1), now);
        heard.record(node(2), now + TTL);
        let late = now + TTL + Duration::from_millis(1);
        assert_eq!(heard.next_message(late), Some((1, vec![node(2)])));
        assert_eq!(heard.pending_count(), 0);
    }

    #[test]
    fn messages_to_a_leader_that_never_answers_are_limited() {
        let (mut heard, now) = (HeartbeatBuffer::new(TTL), Instant::now());
        let mut sent = 0;
        for number in 0..1_000 {
            heard.record(node(number), now);
            sent += usize::from(heard.next_message(now).is_some());
        }
        assert_eq!(sent, MAX_UNACKED);
        assert_eq!(heard.pending_count(), 1_000 - MAX_UNACKED);
        heard.acked(1);
        let (_, all) = heard.next_message(now).unwrap();
        assert_eq!(
            all.len(),
            1_000 - MAX_UNACKED,
            "what waited goes in one message"
        );
    }
}
