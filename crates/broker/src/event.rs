//! Events: facts of the store, requests of workers, and time.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{EvalId, EvalStatus, Evaluation, JobKey, JobType, NodeId, Timestamp, TriggeredBy};
use state::Snapshot;

use crate::free_capacity::{Asks, FreeCapacity};
use crate::token::Token;

/// Names a waiting RPC, so that its answer finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names one worker's dequeue stream; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The changes of one revision of the store, in its order.
    Facts(Vec<Fact>),
    /// A worker requests evaluations of these types, with an initial credit.
    SessionOpened {
        session: SessionId,
        types: JobTypes,
        credit: u32,
    },
    /// The worker grants more credit.
    Credit {
        session: SessionId,
        credit: u32,
    },
    SessionClosed {
        session: SessionId,
    },
    Ack {
        request: RequestId,
        eval_id: EvalId,
        token: Token,
    },
    Nack {
        request: RequestId,
        eval_id: EvalId,
        token: Token,
    },
    Extend {
        request: RequestId,
        eval_id: EvalId,
        token: Token,
    },
    /// Time has passed.
    Tick,
}

/// A fact of the store.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    Open(OpenEval),
    /// The evaluation is terminal or deleted.
    Closed {
        eval_id: EvalId,
        /// The revision that closed it.
        index: u64,
        /// It is complete and has placed everything of its job.
        placed_all: bool,
    },
    /// A node of a class has gained capacity, or a volume of a storage system was registered or became free.
    Capacity {
        class: Arc<str>,
        /// The node, if the gain also unblocks the evaluations of system jobs that wait for it, whatever they
        /// ask for.
        node_id: Option<NodeId>,
        /// The node's free capacity now.
        free: FreeCapacity,
        index: u64,
    },
    /// True if the operator has paused deliveries.
    Paused(bool),
}

/// The broker's view of a pending or blocked evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenEval {
    pub id: EvalId,
    pub job: JobKey,
    pub job_type: JobType,
    pub priority: u8,
    pub create_index: u64,
    pub modify_index: u64,
    /// The earliest delivery; never: at once.
    pub wait_until: Timestamp,
    /// Set when it is blocked.
    pub blocked: Option<Box<BlockedOn>>,
}

/// The capacity that would unblock an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockedOn {
    /// Computed class → whether its nodes could take the job; a class that is missing may.
    pub class_eligibility: BTreeMap<Arc<str>, bool>,
    /// Capacity of any class may help, because class eligibility does not decide; Nomad's word.
    pub escaped: bool,
    /// The revision of the scheduler's snapshot.
    pub snapshot_index: u64,
    /// System jobs: the node of the evaluation.
    pub node_id: Option<NodeId>,
    /// It lost too many placement races, so it is retried after a while.
    pub after_conflicts: bool,
    /// The minimum of free resources on a node; `None`: unknown, any gain may help.
    pub asks: Option<Asks>,
}

impl OpenEval {
    /// Reads an evaluation and the revisions of its key; `snapshot` has its job.
    pub fn new(
        value: &Evaluation,
        create_index: u64,
        modify_index: u64,
        snapshot: &Snapshot,
    ) -> Self {
        let blocked = (value.status == EvalStatus::Blocked).then(|| {
            Box::new(BlockedOn {
                class_eligibility: value
                    .class_eligibility
                    .iter()
                    .map(|(class, eligible)| (Arc::from(class.as_str()), *eligible))
                    .collect(),
                escaped: value.escaped_computed_class,
                snapshot_index: value.snapshot_index,
                node_id: value.node_id.filter(|_| value.job_type == JobType::System),
                after_conflicts: value.triggered_by == TriggeredBy::MaxPlanAttempts,
                asks: Asks::of(snapshot, value),
            })
        });
        Self {
            id: value.id,
            job: value.job.clone(),
            job_type: value.job_type,
            priority: value.priority,
            create_index,
            modify_index,
            wait_until: value.wait_until,
            blocked,
        }
    }
}

/// A set of job types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTypes(u8);

impl JobTypes {
    pub const NONE: Self = Self(0);

    pub fn all() -> Self {
        JobType::ALL.into_iter().collect()
    }

    pub fn contains(self, job_type: JobType) -> bool {
        self.0 & Self::bit(job_type) != 0
    }

    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn bit(job_type: JobType) -> u8 {
        1 << job_type as u8
    }
}

impl FromIterator<JobType> for JobTypes {
    fn from_iter<I: IntoIterator<Item = JobType>>(types: I) -> Self {
        Self(
            types
                .into_iter()
                .fold(0, |bits, job_type| bits | Self::bit(job_type)),
        )
    }
}
