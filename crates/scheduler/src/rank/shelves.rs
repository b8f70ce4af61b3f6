//! Nodes in order of their scores, on one shelf for each way in which the rest of the cluster
//! weighs in.
//!
//! What a spread says of a node depends on where all the group's allocations are, and changes with
//! each; but it says the same of all nodes with the same values. So those stand on one shelf, in
//! the order of what depends on themselves alone, and a placement changes what a few shelves are
//! told instead of what ten thousand nodes are. Nodes that are scored by one scorer more stand
//! apart, because a mean of three orders them differently from a mean of two.
//!
//! A node that changes is put on a shelf again; its old entry is known to be old when it comes up.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hash::BuildHasher as _;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::rank::score::with_spread;

/// A node's score at one moment, without what spreads say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The sum of its scorers and its lot: what entries of a shelf are ordered by.
    pub(crate) key: f64,
    pub(crate) node: u32,
    /// The node's count of changes when it was scored.
    pub(crate) changes: u32,
}

impl Entry {
    pub(crate) fn position(&self) -> usize {
        self.node as usize
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key
            .total_cmp(&other.key)
            .then_with(|| other.node.cmp(&self.node))
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

/// Where a node stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// [`Place::NOWHERE`]: it can never take one of the group.
    pub(crate) shelf: u32,
    pub(crate) changes: u32,
}

impl Place {
    pub(crate) const NOWHERE: Self = Self {
        shelf: u32::MAX,
        changes: 0,
    };

    pub(crate) fn is_somewhere(self) -> bool {
        self.shelf != Self::NOWHERE.shelf
    }
}

/// What a shelf that is empty has to offer.
const NO_SCORE: f64 = f64::NEG_INFINITY;

/// All shelves of a search.
///
/// Shape: every combination of the spreads' keys has two shelves that lie side by side: one for
/// nodes without others of the group, one for those that have some.
#[derive(Clone, Debug)]
pub(crate) struct Shelves {
    heaps: Vec<BinaryHeap<Entry>>,
    /// The score of the best on each shelf, or [`NO_SCORE`].
    best: Vec<f64>,
    /// What the spreads say of each combination.
    totals: Vec<f64>,
    /// The keys of each combination, one after the other.
    keys: Vec<u32>,
    spread_count: usize,
    /// Hash of the keys → combination; one whose hash is taken has the next that is free.
    combinations: FxHashMap<u64, u32>,
    /// How many scorers every node has.
    scorers: f64,
}

impl Shelves {
    pub(crate) fn new(spread_count: usize, scorers: f64) -> Self {
        Self {
            heaps: Vec::new(),
            best: Vec::new(),
            totals: Vec::new(),
            keys: Vec::new(),
            spread_count,
            combinations: FxHashMap::default(),
            scorers,
        }
    }

    /// Returns the number of a combination of keys; `total` is asked what it is told when it is new.
    pub(crate) fn combination(&mut self, keys: &[u32], total: impl FnOnce(&[u32]) -> f64) -> u32 {
        let mut hash = FxBuildHasher.hash_one(keys);
        while let Some(number) = self.combinations.get(&hash) {
            if self.keys_of(*number as usize) == keys {
                return *number;
            }
            hash = hash.wrapping_add(1);
        }
        let number = u32::try_from(self.totals.len()).expect("no more than there are nodes");
        self.combinations.insert(hash, number);
        self.keys.extend(keys);
        self.totals.push(total(keys));
        self.heaps.extend([BinaryHeap::new(), BinaryHeap::new()]);
        self.best.extend([NO_SCORE; 2]);
        number
    }

    pub(crate) fn combination_count(&self) -> usize {
        self.totals.len()
    }

    fn keys_of(&self, combination: usize) -> &[u32] {
        let first = combination * self.spread_count;
        &self.keys[first..first + self.spread_count]
    }

    /// Returns the shelf of nodes with this combination, with or without others of the group.
    pub(crate) fn shelf(combination: u32, has_others: bool) -> u32 {
        combination * 2 + u32::from(has_others)
    }

    /// Returns what spreads say of the nodes on a shelf.
    pub(crate) fn total(&self, shelf: u32) -> f64 {
        self.totals[shelf as usize / 2]
    }

    /// Tells the shelves of every combination with this key of a spread, or of all when there is
    /// none, what spreads say of them now.
    pub(crate) fn tell(&mut self, spread: usize, key: Option<u32>, total: impl Fn(&[u32]) -> f64) {
        for combination in 0..self.totals.len() {
            let keys = self.keys_of(combination);
            if key.is_some_and(|key| keys[spread] != key) {
                continue;
            }
            self.totals[combination] = total(keys);
            self.weigh(combination * 2);
            self.weigh(combination * 2 + 1);
        }
    }

    /// Puts many nodes on their shelves at once.
    pub(crate) fn fill(&mut self, mut entries: Vec<Vec<Entry>>) {
        entries.resize_with(self.heaps.len(), Vec::new);
        for (shelf, entries) in entries.into_iter().enumerate() {
            let mut heap = BinaryHeap::from(entries);
            heap.append(&mut self.heaps[shelf]);
            self.heaps[shelf] = heap;
            self.weigh(shelf);
        }
    }

    pub(crate) fn push(&mut self, shelf: u32, entry: Entry, places: &[Place]) {
        self.heaps[shelf as usize].push(entry);
        self.refresh(shelf, places);
    }

    /// Drops old entries from the top of a shelf, so that its best is one that holds.
    pub(crate) fn refresh(&mut self, shelf: u32, places: &[Place]) {
        let heap = &mut self.heaps[shelf as usize];
        while let Some(top) = heap.peek() {
            if places[top.position()].changes == top.changes {
                break;
            }
            heap.pop();
        }
        self.weigh(shelf as usize);
    }

    /// Works out the score of a shelf's best.
    fn weigh(&mut self, shelf: usize) {
        self.best[shelf] = match self.heaps[shelf].peek() {
            Some(top) => self.score(shelf, top.key),
            None => NO_SCORE,
        };
    }

    /// Returns the score of an entry of a shelf that has this key.
    fn score(&self, shelf: usize, key: f64) -> f64 {
        let has_others = shelf % 2 == 1;
        let scorers = if has_others {
            self.scorers + 1.0
        } else {
            self.scorers
        };
        with_spread(key, scorers, self.totals[shelf / 2])
    }

    /// Takes out the best of all nodes, with its shelf and score.
    pub(crate) fn pop(&mut self, places: &[Place]) -> Option<(Entry, u32, f64)> {
        let mut shelf = 0;
        let mut score = NO_SCORE;
        for (number, best) in (0..).zip(&self.best) {
            if *best > score {
                (shelf, score) = (number, *best);
            }
        }
        if score == NO_SCORE {
            return None;
        }
        let entry = self.heaps[shelf as usize].pop()?;
        self.refresh(shelf, places);
        Some((entry, shelf, score))
    }
}
