//! Preemption candidates: full nodes that fit after evictions, by an upper bound of their scores.
//!
//! Choosing victims costs a look at every allocation of a node. So nodes are ordered by an upper bound
//! of their scores, which follows from their resources by priority; `search::preempt` evaluates them in
//! this order until no other node can be better.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use model::AllocMetric;

use crate::preempt::candidates::Preemptor;

/// The full nodes of a search.
#[derive(Clone, Debug)]
pub(crate) struct PreemptionCandidates {
    pub(super) preemptor: Preemptor,
    /// `None`: not built yet.
    pub(super) bounded: Option<BinaryHeap<BoundedCandidate>>,
    /// Positions of nodes that have changed since the last search.
    pub(super) touched: Vec<usize>,
    /// The number of searches so far.
    pub(super) round: u32,
    /// The metric of the first search: it takes a look at every node.
    pub(super) short: Option<AllocMetric>,
}

impl PreemptionCandidates {
    pub(crate) fn new(preemptor: Preemptor) -> Self {
        Self {
            preemptor,
            bounded: None,
            touched: Vec::new(),
            round: 0,
            short: None,
        }
    }

    /// Notes that a node has changed.
    pub(crate) fn touch(&mut self, position: usize) {
        if self.bounded.is_some() {
            self.touched.push(position);
        }
    }
}

/// A full node with an upper bound of its score.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundedCandidate {
    pub(super) score: f64,
    pub(super) node: u32,
    /// The node's count of changes when it was scored.
    pub(super) changes: u32,
    /// The search in which the exact score was computed; before it, `score` is an upper bound.
    pub(super) round: u32,
}

impl Ord for BoundedCandidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.node.cmp(&self.node))
    }
}

impl PartialOrd for BoundedCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for BoundedCandidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for BoundedCandidate {}
