//! Which allocations of a job need not be kept apart while a version is tried out.
//!
//! A canary goes if its version is not rolled out; an old one goes if it is. Whatever becomes of the
//! rollout, only one of the two stays, so what is to be distinct may be shared by them meanwhile.
//! Where the job is on every node already, there is no other place for a canary.

use std::collections::BTreeSet;

use model::{AllocId, Allocation};
use placement::Requirements;

use crate::reconcile::changes::PlaceAsk;

/// What becomes of an allocation when somebody decides about the version that is tried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// It stays in any case, or nothing is tried out.
    Settled,
    /// It makes way for the version if that is promoted.
    Old,
    /// It tries the version out, and goes if that is not promoted.
    Tried,
}

impl Generation {
    pub(crate) fn of_ask(ask: &PlaceAsk<'_>) -> Self {
        if ask.is_canary {
            Self::Tried
        } else if ask.older.is_some() {
            Self::Old
        } else {
            Self::Settled
        }
    }

    /// Tells whether at most one of two such allocations stays.
    pub(crate) fn parts_from(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Old, Self::Tried) | (Self::Tried, Self::Old)
        )
    }

    /// Tells whether one that asks for this may be beside some that it would otherwise be kept from.
    pub(crate) fn may_share(self, requirements: &Requirements) -> bool {
        requirements.is_distinct() && self != Self::Settled
    }
}

/// The live allocations of a job that do not stay in any case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generations {
    /// The job's newest version.
    pub(crate) version: u64,
    pub(crate) old: BTreeSet<AllocId>,
    pub(crate) tried: BTreeSet<AllocId>,
}

impl Generations {
    pub(crate) fn of(&self, id: AllocId) -> Generation {
        if self.tried.contains(&id) {
            Generation::Tried
        } else if self.old.contains(&id) {
            Generation::Old
        } else {
            Generation::Settled
        }
    }

    /// Returns the generation of one that a plan makes: nothing gets an older version but while a
    /// newer one is tried out.
    pub(crate) fn of_new(&self, alloc: &Allocation) -> Generation {
        if alloc.canary {
            Generation::Tried
        } else if alloc.job_version < self.version {
            Generation::Old
        } else {
            Generation::Settled
        }
    }
}
