//! Placement requests, and the nodes found for them.

use model::{Algorithm, AllocMetric, NodeId};
use placement::Requirements;
use state::AllocView;

use crate::preempt::candidates::Preemptor;
use crate::rank::assignment::Assignment;
use crate::rank::preferences::Preferences;

/// The placement request of a group, with the allocations of its job.
pub(crate) struct Ask<'a> {
    pub(crate) requirements: &'a Requirements,
    pub(crate) preferences: Preferences,
    pub(crate) count: u32,
    pub(crate) algorithm: Algorithm,
    /// The job's live allocations.
    pub(crate) live: Vec<JobAllocation>,
    /// `None`: no preemption.
    pub(crate) preemptor: Option<Preemptor>,
}

/// A live allocation of the job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobAllocation {
    pub(crate) node_id: NodeId,
    pub(crate) is_of_group: bool,
    /// Only one of it and the new allocation survives the rollout: spreads do not count it.
    pub(crate) is_alternative: bool,
    /// Distinctness constraints do not count it, for the same reason.
    pub(crate) may_share: bool,
}

/// One allocation's requirements beyond those of its group.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllocAsk {
    /// Taken if it has room, regardless of the score: the predecessor's disk, for instance.
    pub(crate) preferred: Option<NodeId>,
    /// Nodes on which predecessors failed.
    pub(crate) penalised: Vec<NodeId>,
    /// The name index, which may select its volumes.
    pub(crate) name_index: u32,
}

/// The node found for one allocation.
#[derive(Clone, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) position: usize,
    pub(crate) node_id: NodeId,
    pub(crate) assignment: Assignment,
    pub(crate) metric: Box<AllocMetric>,
    /// Allocations to evict there.
    pub(crate) victims: Vec<&'a AllocView>,
}
