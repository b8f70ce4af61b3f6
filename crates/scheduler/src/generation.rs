//! Generations of a job's allocations while a version is tried out: stable, outgoing, canary.
//!
//! A canary is stopped if its version is not promoted, an outgoing allocation if it is. Only one of the
//! two survives the rollout, so both may share a node that has to be distinct. Where the job is on every
//! node already, there is no other place for a canary.

use std::collections::BTreeSet;

use model::{AllocId, Allocation};
use placement::Requirements;

/// The meaning of a version's promotion for an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// It stays either way, or no version is tried out.
    Stable,
    /// It is replaced when the version is promoted.
    Outgoing,
    /// It runs the version that is tried out, and is stopped unless that is promoted.
    Canary,
}

impl Generation {
    /// Tells whether at most one of two allocations survives the rollout.
    pub(crate) fn is_alternative_to(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Outgoing, Self::Canary) | (Self::Canary, Self::Outgoing)
        )
    }

    /// Tells whether an allocation with these requirements may share distinct values.
    pub(crate) fn may_share(self, requirements: &Requirements) -> bool {
        requirements.is_distinct() && self != Self::Stable
    }
}

/// The live allocations of a job that are not stable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generations {
    /// The job's newest version.
    pub(crate) version: u64,
    pub(crate) outgoing: BTreeSet<AllocId>,
    pub(crate) canaries: BTreeSet<AllocId>,
}

impl Generations {
    pub(crate) fn of(&self, id: AllocId) -> Generation {
        if self.canaries.contains(&id) {
            Generation::Canary
        } else if self.outgoing.contains(&id) {
            Generation::Outgoing
        } else {
            Generation::Stable
        }
    }

    /// Returns the generation of an allocation that a plan makes: an older version is placed only while
    /// a newer one is tried out.
    pub(crate) fn of_new(&self, alloc: &Allocation) -> Generation {
        if alloc.canary {
            Generation::Canary
        } else if alloc.job_version < self.version {
            Generation::Outgoing
        } else {
            Generation::Stable
        }
    }
}
