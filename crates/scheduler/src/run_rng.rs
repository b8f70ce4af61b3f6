//! Ids and random selections of one run, all from its seed, so that a run is deterministic.

use model::{AllocId, DeploymentId, EvalId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::selection::Selection;

/// The random number generator of one run.
///
/// The evaluation and the snapshot are part of the seed: runs with the same seed argument still draw
/// different ids.
#[derive(Debug)]
pub(crate) struct RunRng {
    rng: StdRng,
    selection: Selection,
}

impl RunRng {
    pub(crate) fn new(seed: u64, eval_id: EvalId, snapshot_index: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(eval_id.0.as_bytes());
        bytes[16..24].copy_from_slice(&seed.to_le_bytes());
        bytes[24..].copy_from_slice(&snapshot_index.to_le_bytes());
        Self {
            rng: StdRng::from_seed(bytes),
            selection: Selection::FIRST,
        }
    }

    pub(crate) fn with_selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// Returns the selection of nodes.
    pub(crate) fn selection(&self) -> Selection {
        self.selection
    }

    pub(crate) fn alloc_id(&mut self) -> AllocId {
        AllocId::from_random(self.rng.random())
    }

    pub(crate) fn eval_id(&mut self) -> EvalId {
        EvalId::from_random(self.rng.random())
    }

    pub(crate) fn deployment_id(&mut self) -> DeploymentId {
        DeploymentId::from_random(self.rng.random())
    }

    /// Returns a number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.rng.random_range(0..bound)
    }

    /// Returns a seed for selections that must not depend on their order.
    pub(crate) fn seed(&mut self) -> u64 {
        self.rng.random()
    }
}
