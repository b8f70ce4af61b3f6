//! Reconciler of a system or sysbatch job: its inputs, and a group's allocations by decision.

use std::collections::{BTreeMap, BTreeSet};

use model::{Indexed, Job, NodeId};
use placement::Requirements;
use state::AllocView;

use crate::in_place::InPlace;
use crate::reconcile::context::Context;

/// Reconciles a system or sysbatch job.
pub(crate) struct SystemReconciler<'a, 'b> {
    pub(crate) context: Context<'a>,
    pub(crate) job: &'a Indexed<Job>,
    pub(crate) requirements: &'a BTreeMap<String, Requirements>,
    pub(crate) in_place: &'b mut InPlace<'a>,
}

/// A group's live allocations by the decision about them.
#[derive(Debug, Default)]
pub(super) struct Sorted<'a> {
    /// To be replaced on their nodes, in this order.
    pub(super) updates: Vec<&'a AllocView>,
    /// Node and name index of the allocations that stay.
    pub(super) taken: BTreeSet<(NodeId, u32)>,
    /// The number of allocations that stay on nodes that can run the group.
    pub(super) staying: u32,
    /// Of these, the ones without a health verdict in the current deployment, or in a superseded one.
    pub(super) unproven: u32,
    /// Of these, the healthy ones of the current deployment.
    pub(super) healthy: u32,
    /// Of these, the canaries.
    pub(super) canaries: u32,
    /// Allocations to migrate from a node that stays schedulable, or from an address that it lost.
    pub(super) moving: Vec<&'a AllocView>,
}

pub(super) fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}
