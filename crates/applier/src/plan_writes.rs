//! The writes of one plan, before they are split into pieces.

use state::Write;

/// Writes of one plan, grouped by where it may be split.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanWrites {
    /// Compares that every piece repeats: the job, and the evaluation until it is written.
    pub guards: Vec<Write>,
    /// In the first piece: deployments, and delayed evaluations that later allocations name.
    pub head: Vec<Write>,
    /// Stops before placements, so that a placement finds its room and its name free; both in node
    /// order. The plan may be split between any two.
    pub units: Vec<IndivisibleWrites>,
    /// In the last piece: the evaluation's outcome, and blocked evaluations. Empty unless the whole
    /// plan is accepted.
    pub tail: Vec<Write>,
}

/// Writes that must not be split: those of one allocation, or of evictions with their evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct IndivisibleWrites {
    pub ops: Vec<Write>,
    /// A compare of the node, once per node and piece.
    pub node_check: Option<Write>,
}

impl PlanWrites {
    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.units.is_empty() && self.tail.is_empty()
    }
}
