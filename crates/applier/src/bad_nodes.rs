//! Detection of bad nodes: nodes with repeated rejections, which should become ineligible.
//!
//! Scheduler and applier check with the same code, so a rejection means that a concurrent plan was
//! faster, which is rare for one node and does not last. A node with a hundred rejections in five
//! minutes has a fault that needs an operator; until then it delays every job that is planned onto
//! it ([`Tracker`]). [`mark`] makes the node ineligible. Pure: the time is an argument.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use model::{NodeEligibility, NodeId, Timestamp};
use state::{Entity, Key, Snapshot, Write};

/// Nodes that are tracked at the same time; the one with the oldest last rejection is dropped.
/// Source: Nomad's bound.
const TRACKED_MAX: usize = 50;

/// Nodes that may be marked in a burst. Source: Nomad's bound, here and below: a fault of our own
/// must not disable the whole cluster.
const MARKS_MAX: u32 = 10;

/// Time until one more node may be marked: five in half an hour.
const MARK_EVERY: Duration = Duration::from_secs(6 * 60);

/// Threshold of rejections, and their window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// At least 1.
    pub threshold: u32,
    /// Rejections count for this long.
    pub window: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threshold: 100,
            window: Duration::from_secs(5 * 60),
        }
    }
}

/// Counts rejections during one leadership.
#[derive(Debug)]
pub struct Tracker {
    settings: Settings,
    /// Node → times of its rejections, oldest first; at most `threshold` of them.
    nodes: BTreeMap<NodeId, VecDeque<Timestamp>>,
    /// Nodes that may be marked now.
    tokens: u32,
    /// Start of the wait for the next token; `NEVER` while all tokens are available.
    since: Timestamp,
}

impl Tracker {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings: Settings {
                threshold: settings.threshold.max(1),
                ..settings
            },
            nodes: BTreeMap::new(),
            tokens: MARKS_MAX,
            since: Timestamp::NEVER,
        }
    }

    /// Notes a rejection of a node's part of a plan; returns whether to mark the node now.
    ///
    /// The count of a marked node starts again. Without a token the node is marked with a later
    /// rejection, if it still reaches the threshold.
    pub fn rejected(&mut self, now: Timestamp, node: NodeId) -> bool {
        self.make_room(node);
        let limit = usize::try_from(self.settings.threshold).unwrap_or(usize::MAX);
        let window = self.settings.window;
        let times = self.nodes.entry(node).or_default();
        times.push_back(now);
        while times.len() > limit || times.front().is_some_and(|at| now.since(*at) >= window) {
            times.pop_front();
        }
        if times.len() < limit || !self.take_token(now) {
            return false;
        }
        self.nodes.remove(&node);
        true
    }

    fn make_room(&mut self, node: NodeId) {
        if self.nodes.len() < TRACKED_MAX || self.nodes.contains_key(&node) {
            return;
        }
        let newest = |times: &VecDeque<Timestamp>| times.back().copied().unwrap_or_default();
        let oldest = self.nodes.iter().min_by_key(|(_, times)| newest(times));
        if let Some(id) = oldest.map(|(id, _)| *id) {
            self.nodes.remove(&id);
        }
    }

    fn take_token(&mut self, now: Timestamp) -> bool {
        while self.tokens < MARKS_MAX && now.since(self.since) >= MARK_EVERY {
            self.tokens += 1;
            self.since = self.since.plus(MARK_EVERY);
        }
        if self.tokens == 0 {
            return false;
        }
        if self.tokens == MARKS_MAX {
            self.since = now;
        }
        self.tokens -= 1;
        true
    }
}

/// Returns the write that makes a node ineligible; `None`: it takes nothing new already, or is gone.
pub fn mark(snapshot: &Snapshot, id: NodeId, now: Timestamp) -> Option<Write> {
    let stored = snapshot
        .node(id)
        .filter(|node| node.value.is_schedulable())?;
    let mut node = stored.value.clone();
    node.eligibility = NodeEligibility::Ineligible;
    node.note(
        now,
        "Scheduler",
        "Node marked as ineligible: too many plans rejected",
    );
    Some(Write::Update {
        key: Key::Node(id),
        modify_index: stored.modify_index,
        entity: Entity::Node(Box::new(node)),
    })
}

#[cfg(test)]
mod tests {
    use test_kit::{Stored, builders};

    use super::*;

    #[test]
    fn a_marked_node_is_ineligible_and_says_why_and_is_marked_once() {
        let mut stored = Stored::default();
        let good = builders::node(1);
        assert_eq!(mark(&stored.snapshot(), good.id, at(0)), None);
        let modify_index = stored.put_node(&good);
        let marked = mark(&stored.snapshot(), good.id, at(7));
        let Some(Write::Update {
            key,
            modify_index: compared,
            entity: Entity::Node(node),
        }) = marked
        else {
            panic!("{marked:?}")
        };
        assert_eq!((key, compared), (Key::Node(good.id), modify_index));
        assert_eq!(node.eligibility, NodeEligibility::Ineligible);
        let event = node.events.last().unwrap();
        assert_eq!(event.time, at(7));
        assert!(event.message.contains("too many plans"), "{event:?}");
        stored.put_node(&node);
        assert_eq!(mark(&stored.snapshot(), good.id, at(8)), None);
    }

    const SECOND: Duration = Duration::from_secs(1);
    const START: Timestamp = Timestamp(1_000_000_000_000);

    fn node(number: u128) -> NodeId {
        NodeId::from_random(number)
    }

    fn at(seconds: u64) -> Timestamp {
        START.plus(SECOND * u32::try_from(seconds).unwrap())
    }

    /// Rejects each of `nodes` `times` times, and returns the nodes to mark.
    fn reject(tracker: &mut Tracker, now: Timestamp, nodes: u128, times: u32) -> Vec<u128> {
        let mut marked = Vec::new();
        for _ in 0..times {
            marked.extend((1..=nodes).filter(|number| tracker.rejected(now, node(*number))));
        }
        marked
    }

    #[test]
    fn scenario_059_ten_nodes_are_marked_at_once_and_then_one_every_six_minutes() {
        let mut tracker = Tracker::new(Settings::default());
        let mut marked = Vec::new();
        // A hundred times each within four minutes.
        for round in 0..100 {
            let now = at(round * 240 / 100);
            marked.extend((1..=12).filter(|number| tracker.rejected(now, node(*number))));
        }
        assert_eq!(marked, (1..=10).collect::<Vec<_>>());
        let last = 99 * 240 / 100;
        // A marked node takes no more work, so none of its parts is rejected.
        let mut again = |nodes: std::ops::RangeInclusive<u128>, seconds: std::ops::Range<u64>| {
            let mut marked = Vec::new();
            for second in seconds {
                let now = at(last + second);
                let mut nodes = nodes.clone();
                marked.extend(nodes.find(|number| tracker.rejected(now, node(*number))));
            }
            marked
        };
        assert_eq!(again(11..=12, 1..360), []);
        assert_eq!(again(11..=12, 360..361), [11]);
        assert_eq!(again(12..=12, 361..720), []);
        assert_eq!(again(12..=12, 720..721), [12]);
    }

    #[test]
    fn one_below_the_threshold_is_not_enough() {
        let mut tracker = Tracker::new(Settings::default());
        assert_eq!(reject(&mut tracker, at(0), 1, 99), []);
        assert_eq!(reject(&mut tracker, at(1), 1, 1), [1]);
        // The count starts again after the mark.
        assert_eq!(reject(&mut tracker, at(2), 1, 99), []);
    }

    #[test]
    fn rejections_before_the_window_do_not_count() {
        let mut tracker = Tracker::new(Settings::default());
        assert_eq!(reject(&mut tracker, at(0), 1, 99), []);
        assert_eq!(reject(&mut tracker, at(300), 1, 99), []);
        assert_eq!(reject(&mut tracker, at(599), 1, 1), [1]);
    }

    #[test]
    fn tokens_come_back_up_to_ten() {
        let mut tracker = Tracker::new(Settings {
            threshold: 1,
            ..Settings::default()
        });
        assert_eq!(reject(&mut tracker, at(0), 20, 1).len(), 10);
        assert_eq!(reject(&mut tracker, at(36_000), 20, 1).len(), 10);
        assert_eq!(reject(&mut tracker, at(36_000 + 1_800), 20, 1).len(), 5);
    }

    #[test]
    fn at_most_fifty_nodes_are_tracked_and_the_quietest_is_dropped() {
        let mut tracker = Tracker::new(Settings {
            threshold: 2,
            ..Settings::default()
        });
        for number in 1..=51 {
            let now = at(u64::try_from(number).unwrap());
            assert!(!tracker.rejected(now, node(number)));
        }
        assert_eq!(tracker.nodes.len(), TRACKED_MAX);
        assert!(tracker.rejected(at(60), node(2)), "it was kept");
        assert!(!tracker.rejected(at(60), node(1)), "it was forgotten");
    }
}
