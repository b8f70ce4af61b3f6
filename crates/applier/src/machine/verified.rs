//! Verified plans, and the transaction under way with its plans.

use std::collections::VecDeque;
use std::sync::Arc;

use model::AllocId;

use super::message::CommitId;
use super::queue::Queued;
use crate::piece::Piece;
use crate::verify::verdict::Accepted;

/// A plan that may be committed once those before it are.
#[derive(Clone, Debug)]
pub(super) struct Verified {
    pub(super) queued: Queued,
    pub(super) accepted: Accepted,
    /// Pieces that are not sent yet, in order.
    pub(super) pieces: VecDeque<Arc<Piece>>,
    /// Allocations placed by earlier pieces of this plan.
    pub(super) placed: Vec<AllocId>,
    /// The revision of the last committed piece; 0: none.
    pub(super) committed_index: u64,
}

impl Verified {
    /// Returns whether its pieces are only valid together.
    pub(super) fn is_indivisible(&self) -> bool {
        self.queued.plan.all_at_once && self.pieces.len() > 1
    }

    pub(super) fn operations(&self) -> usize {
        self.pieces.iter().map(|piece| piece.ops.len()).sum()
    }
}

/// The transaction under way, with its plans.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) id: CommitId,
    pub(super) pieces: Vec<Arc<Piece>>,
    pub(super) plans: Vec<Verified>,
}
