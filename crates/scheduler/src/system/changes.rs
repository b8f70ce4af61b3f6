//! Changes of a system or sysbatch job: placements on particular nodes, with the rollout.

use std::collections::BTreeMap;

use model::job::TaskGroup;
use model::{AllocMetric, Deployment, NodeId, Timestamp};

use crate::reconcile::changes::{JobChanges, PlaceAsk};

/// The changes of a system or sysbatch job.
#[derive(Debug, Default)]
pub(crate) struct SystemChanges<'a> {
    /// Stops and updates, without placements.
    pub(crate) job: JobChanges<'a>,
    pub(crate) groups: Vec<SystemGroup<'a>>,
    /// The current or new deployment of the placements.
    pub(crate) deployment: Option<Deployment>,
}

/// The placements of one group, with its rollout.
#[derive(Debug)]
pub(crate) struct SystemGroup<'a> {
    pub(crate) group: &'a TaskGroup,
    pub(crate) asks: Vec<NodeAsk<'a>>,
    /// The number of allocations to be, on nodes that can run the group.
    pub(super) candidates: u32,
    pub(super) healthy: u32,
    pub(super) desired_canaries: u32,
    /// Outdated allocations wait for the limit, the canaries or a resumption.
    pub(super) is_held: bool,
    /// Allocations run or are complete, though nothing is placed.
    pub(super) has_some: bool,
    /// The metric of nodes that cannot run the group.
    pub(super) filtered: AllocMetric,
    /// Nodes with a failed allocation that is not replaced now, with the time of the next attempt.
    pub(crate) failed: BTreeMap<NodeId, Option<Timestamp>>,
}

/// A placement on one particular node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeAsk<'a> {
    pub(crate) node_id: NodeId,
    pub(crate) ask: PlaceAsk<'a>,
}
