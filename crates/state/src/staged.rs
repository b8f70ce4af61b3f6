//! Plans that are written as a whole although one transaction cannot hold them.
//!
//! Their pieces are put aside first, where nobody counts them; a commit record makes all of them
//! valid at one revision; then they are moved to where they belong, one after the other.

use std::sync::Arc;

use imbl::OrdMap;
use model::{EvalId, Indexed};
use serde::{Deserialize, Serialize};

use crate::change::{Entity, Key};
use crate::snapshot::Snapshot;

/// A part of a plan that was put aside: the value of `plan-piece/<evaluation>/<n>`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanPiece {
    pub ops: Vec<StagedOp>,
}

/// One write that is meant, or (without an entity) something that was so when it was meant.
#[derive(Clone, Debug, PartialEq)]
pub struct StagedOp {
    pub key: Key,
    /// What it is built on; 0: the key does not exist.
    pub modify_index: u64,
    pub entity: Option<Entity>,
}

/// Says that a plan holds: the value of `plan-commit/<evaluation>`. It goes with the last piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanCommit {
    /// How many there are.
    pub pieces: u32,
    /// How far a piece is moved that etcd did not take at once; missing: none is moved in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Progress>,
}

/// How far one piece is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub piece: u32,
    /// How many of its operations are where they belong, from the first on.
    pub ops: u32,
}

impl PlanCommit {
    /// Returns how far the piece at `position`, which is still there, is moved.
    pub fn progress(&self, position: u32) -> Progress {
        let begun = self.begun.filter(|begun| begun.piece == position);
        begun.unwrap_or(Progress {
            piece: position,
            ops: 0,
        })
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Staged {
    pub(crate) pieces: OrdMap<(EvalId, u32), Arc<Indexed<PlanPiece>>>,
    pub(crate) commits: OrdMap<EvalId, Arc<Indexed<PlanCommit>>>,
}

impl Snapshot {
    /// Returns the pieces that were put aside and not moved yet, by plan and position.
    pub fn plan_pieces(&self) -> impl Iterator<Item = (EvalId, u32, &Arc<Indexed<PlanPiece>>)> {
        let pieces = self.tables().staged.pieces.iter();
        pieces.map(|((eval_id, position), piece)| (*eval_id, *position, piece))
    }

    /// Returns a piece that was put aside and not moved yet.
    pub fn plan_piece(&self, eval_id: EvalId, position: u32) -> Option<&Arc<Indexed<PlanPiece>>> {
        self.tables().staged.pieces.get(&(eval_id, position))
    }

    /// Returns what says that the plan of an evaluation holds; `None`: there is no such plan, or it
    /// does not, or it is all where it belongs.
    pub fn plan_commit(&self, eval_id: EvalId) -> Option<&Arc<Indexed<PlanCommit>>> {
        self.tables().staged.commits.get(&eval_id)
    }

    /// Returns every plan that holds and is not all where it belongs.
    pub fn plan_commits(&self) -> impl Iterator<Item = (EvalId, &Arc<Indexed<PlanCommit>>)> {
        let commits = self.tables().staged.commits.iter();
        commits.map(|(eval_id, commit)| (*eval_id, commit))
    }
}
