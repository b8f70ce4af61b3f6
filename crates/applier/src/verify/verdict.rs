//! Results of verifying plans and their parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::NodeId;

use crate::piece::Piece;

/// The result of verifying a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanVerification {
    /// Commit the accepted part.
    Accepted(Accepted),
    /// A precondition of the plan no longer holds: nothing of it may be written.
    Refused(PlanRefusal),
    /// It depends on a pending write, whose revision is not known yet: verify it again once that write
    /// is settled.
    Waits,
}

/// The refusal of a whole plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRefusal {
    pub reason: String,
    /// A snapshot at this revision or later shows the change.
    pub refresh_index: u64,
}

/// The part of a plan that may be committed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accepted {
    /// Pieces to commit one after the other; none when there is nothing to write.
    pub pieces: Vec<Arc<Piece>>,
    /// Rejected nodes with the reason.
    pub rejected_nodes: BTreeMap<NodeId, String>,
    /// The revision of the snapshot of the verification.
    pub base_index: u64,
}

/// The result of verifying one node's part of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOutcome {
    Accepted,
    Rejected(String),
}
