//! Score buckets: nodes by score, in one bucket for each combination of spread values.
//!
//! The boost of a spread depends on all allocations of the group and changes with each, but it is
//! equal for all nodes with equal values. So these share a bucket, ordered by the scores that
//! depend on the node alone, and a placement updates the totals of a few buckets instead of ten
//! thousand nodes. Nodes with an additional scorer have buckets of their own, because a mean of
//! three orders them differently from a mean of two.
//!
//! A changed node is added again; its outdated entry is recognised when it comes up.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hash::BuildHasher as _;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::rank::score::with_spread;

/// A node's score at one moment, without spreads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The sum of its scorers and its random number: the order within a bucket.
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

/// The bucket of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketRef {
    /// [`BucketRef::NONE`]: the node is not feasible.
    pub(crate) bucket: u32,
    pub(crate) changes: u32,
}

impl BucketRef {
    pub(crate) const NONE: Self = Self {
        bucket: u32::MAX,
        changes: 0,
    };

    pub(crate) fn has_bucket(self) -> bool {
        self.bucket != Self::NONE.bucket
    }
}

/// The best score of an empty bucket.
const NO_SCORE: f64 = f64::NEG_INFINITY;

/// All buckets of a search.
///
/// Shape: every combination of the spreads' keys has two adjacent buckets: nodes without
/// allocations of the group, and nodes with some.
#[derive(Clone, Debug)]
pub(crate) struct ScoreBuckets {
    heaps: Vec<BinaryHeap<Entry>>,
    /// The best score of each bucket, or [`NO_SCORE`].
    best: Vec<f64>,
    /// The spread boost of each combination.
    totals: Vec<f64>,
    /// The keys of all combinations, one after the other.
    keys: Vec<u32>,
    spread_count: usize,
    /// Hash of the keys → combination; on a collision, the next free hash.
    combinations: FxHashMap<u64, u32>,
    /// The number of scorers of every node.
    scorers: f64,
}

impl ScoreBuckets {
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

    /// Returns the number of a combination of keys; `total` computes the boost of a new one.
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

    /// Returns the bucket of nodes with this combination, with or without others of the group.
    pub(crate) fn bucket(combination: u32, has_others: bool) -> u32 {
        combination * 2 + u32::from(has_others)
    }

    /// Returns the spread boost of a bucket.
    pub(crate) fn total(&self, bucket: u32) -> f64 {
        self.totals[bucket as usize / 2]
    }

    /// Updates the boosts of all combinations with this key of a spread; of all combinations if
    /// there is none.
    pub(crate) fn update_totals(
        &mut self,
        spread: usize,
        key: Option<u32>,
        total: impl Fn(&[u32]) -> f64,
    ) {
        for combination in 0..self.totals.len() {
            let keys = self.keys_of(combination);
            if key.is_some_and(|key| keys[spread] != key) {
                continue;
            }
            self.totals[combination] = total(keys);
            self.refresh_best(combination * 2);
            self.refresh_best(combination * 2 + 1);
        }
    }

    /// Adds many nodes at once.
    pub(crate) fn fill(&mut self, mut entries: Vec<Vec<Entry>>) {
        entries.resize_with(self.heaps.len(), Vec::new);
        for (bucket, entries) in entries.into_iter().enumerate() {
            let mut heap = BinaryHeap::from(entries);
            heap.append(&mut self.heaps[bucket]);
            self.heaps[bucket] = heap;
            self.refresh_best(bucket);
        }
    }

    pub(crate) fn push(&mut self, bucket: u32, entry: Entry, bucket_refs: &[BucketRef]) {
        self.heaps[bucket as usize].push(entry);
        self.refresh(bucket, bucket_refs);
    }

    /// Drops outdated entries from the top of a bucket, so that its best one is valid.
    pub(crate) fn refresh(&mut self, bucket: u32, bucket_refs: &[BucketRef]) {
        let heap = &mut self.heaps[bucket as usize];
        while let Some(top) = heap.peek() {
            if bucket_refs[top.position()].changes == top.changes {
                break;
            }
            heap.pop();
        }
        self.refresh_best(bucket as usize);
    }

    /// Computes the best score of a bucket.
    fn refresh_best(&mut self, bucket: usize) {
        self.best[bucket] = match self.heaps[bucket].peek() {
            Some(top) => self.score(bucket, top.key),
            None => NO_SCORE,
        };
    }

    /// Returns the score of an entry with this key.
    fn score(&self, bucket: usize, key: f64) -> f64 {
        let has_others = bucket % 2 == 1;
        let scorers = if has_others {
            self.scorers + 1.0
        } else {
            self.scorers
        };
        with_spread(key, scorers, self.totals[bucket / 2])
    }

    /// Takes out the best of all nodes, with its bucket and score.
    pub(crate) fn pop(&mut self, bucket_refs: &[BucketRef]) -> Option<(Entry, u32, f64)> {
        let mut bucket = 0;
        let mut score = NO_SCORE;
        for (number, best) in (0..).zip(&self.best) {
            if *best > score {
                (bucket, score) = (number, *best);
            }
        }
        if score == NO_SCORE {
            return None;
        }
        let entry = self.heaps[bucket as usize].pop()?;
        self.refresh(bucket, bucket_refs);
        Some((entry, bucket, score))
    }
}
