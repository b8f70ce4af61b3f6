//! Queries of staged plans: plans that are committed atomically in several transactions.
//!
//! Their pieces are staged first, under keys that no reader counts. A commit record makes all of
//! them valid at one revision. Then each piece is moved to the keys that it writes.

use std::sync::Arc;

use model::{EvalId, Indexed};

use crate::entity::{PlanCommit, PlanPiece};
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns the staged pieces that are not moved yet, ordered by plan and position.
    pub fn plan_pieces(&self) -> impl Iterator<Item = (EvalId, u32, &Arc<Indexed<PlanPiece>>)> {
        let pieces = self.tables().staged.pieces.iter();
        pieces.map(|((eval_id, position), piece)| (*eval_id, *position, piece))
    }

    /// Returns a staged piece that is not moved yet.
    pub fn plan_piece(&self, eval_id: EvalId, position: u32) -> Option<&Arc<Indexed<PlanPiece>>> {
        self.tables().staged.pieces.get(&(eval_id, position))
    }

    /// Returns the commit record of an evaluation's plan; `None`: the plan is unknown, not
    /// committed, or moved completely.
    pub fn plan_commit(&self, eval_id: EvalId) -> Option<&Arc<Indexed<PlanCommit>>> {
        self.tables().staged.commits.get(&eval_id)
    }

    /// Returns every plan that is committed and not moved completely.
    pub fn plan_commits(&self) -> impl Iterator<Item = (EvalId, &Arc<Indexed<PlanCommit>>)> {
        let commits = self.tables().staged.commits.iter();
        commits.map(|(eval_id, commit)| (*eval_id, commit))
    }
}
