//! Nodes in order of their scores; a node that changes is put in again, and its old entry is known
//! to be old when it comes up.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A node's score at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The score and the node's jitter: what entries are ordered by.
    pub(crate) key: f64,
    pub(crate) mean: f64,
    pub(crate) position: usize,
    /// The node's count of changes when it was scored.
    pub(crate) changes: u32,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key
            .total_cmp(&other.key)
            .then_with(|| other.position.cmp(&self.position))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

/// The best first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranking {
    heap: BinaryHeap<Entry>,
}

impl Ranking {
    pub(crate) fn from_entries(entries: Vec<Entry>) -> Self {
        Self {
            heap: BinaryHeap::from(entries),
        }
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.heap.push(entry);
    }

    /// Takes out the best entry that `is_current`; older ones are dropped on the way.
    pub(crate) fn pop(&mut self, is_current: impl Fn(&Entry) -> bool) -> Option<Entry> {
        while let Some(entry) = self.heap.pop() {
            if is_current(&entry) {
                return Some(entry);
            }
        }
        None
    }
}
