//! Remembers which nodes were heard from and not yet passed on.
//!
//! Pure. A set, not a queue: it holds each node at most once, however long nobody takes it, and a
//! heartbeat that has become too old to mean anything is dropped.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use model::NodeId;
use tokio::time::Instant;

/// How many messages may be under way without an answer: at a few a second, several seconds' worth;
/// beyond that the leader is stuck, and what is heard waits here.
const MAX_UNACKED: usize = 32;

/// Nodes heard from.
#[derive(Debug)]
pub struct Heard {
    /// When each was heard from last; not sent yet.
    pending: HashMap<NodeId, Instant>,
    /// Sent and not answered, by sequence number.
    unacked: VecDeque<(u64, Vec<(NodeId, Instant)>)>,
    next_sequence: u64,
    /// After how long a heartbeat says nothing any more.
    max_age: Duration,
}

impl Heard {
    pub fn new(max_age: Duration) -> Self {
        Self {
            pending: HashMap::new(),
            unacked: VecDeque::new(),
            next_sequence: 1,
            max_age,
        }
    }

    pub fn heard(&mut self, node_id: NodeId, now: Instant) {
        self.pending.insert(node_id, now);
    }

    /// Returns the next message: a sequence number and the nodes in it, ordered by id; `None` when
    /// there is nothing to say or too much of it is unanswered.
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

    /// Notes that everything up to `sequence` has arrived.
    pub fn acked(&mut self, sequence: u64) {
        while self
            .unacked
            .front()
            .is_some_and(|(sent, _)| *sent <= sequence)
        {
            self.unacked.pop_front();
        }
    }

    /// Notes that the stream is gone: what was not answered has to be said again.
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

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn node(number: u128) -> NodeId {
        NodeId::from_random(number)
    }

    #[test]
    fn a_node_heard_from_twice_is_passed_on_once() {
        let (mut heard, now) = (Heard::new(TTL), Instant::now());
        heard.heard(node(1), now);
        heard.heard(node(1), now);
        assert_eq!(heard.next_message(now), Some((1, vec![node(1)])));
        assert_eq!(heard.next_message(now), None);
    }

    #[test]
    fn what_was_not_answered_is_said_again_to_the_next_leader() {
        let (mut heard, now) = (Heard::new(TTL), Instant::now());
        for number in 1..=3 {
            heard.heard(node(number), now);
            heard.next_message(now);
        }
        heard.acked(1);
        heard.disconnected();
        let mut again = vec![node(2), node(3)];
        again.sort_unstable();
        assert_eq!(heard.next_message(now), Some((4, again)));
    }

    #[test]
    fn what_is_said_again_is_as_old_as_the_newest_heartbeat() {
        let (mut heard, now) = (Heard::new(TTL), Instant::now());
        let later = now + TTL / 2;
        heard.heard(node(1), now);
        heard.next_message(now);
        heard.heard(node(1), later);
        heard.disconnected();
        assert_eq!(heard.next_message(later + TTL), Some((2, vec![node(1)])));

        heard.disconnected();
        assert_eq!(heard.next_message(later + TTL * 2), None);
    }

    #[test]
    fn an_old_heartbeat_is_not_passed_on() {
        let (mut heard, now) = (Heard::new(TTL), Instant::now());
        heard.heard(node(1), now);
        heard.heard(node(2), now + TTL);
        let late = now + TTL + Duration::from_millis(1);
        assert_eq!(heard.next_message(late), Some((1, vec![node(2)])));
        assert_eq!(heard.pending_count(), 0);
    }

    #[test]
    fn a_leader_that_never_answers_is_not_told_for_ever() {
        let (mut heard, now) = (Heard::new(TTL), Instant::now());
        let mut sent = 0;
        for number in 0..1_000 {
            heard.heard(node(number), now);
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
