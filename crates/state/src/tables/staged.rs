//! Pieces and commit records of plans that are committed in several transactions.

use std::sync::Arc;

use imbl::OrdMap;
use model::{EvalId, Indexed};

use crate::entity::{PlanCommit, PlanPiece};

#[derive(Clone, Debug, Default)]
pub(crate) struct Staged {
    pub(crate) pieces: OrdMap<(EvalId, u32), Arc<Indexed<PlanPiece>>>,
    pub(crate) commits: OrdMap<EvalId, Arc<Indexed<PlanCommit>>>,
}
