//! Stored objects, and conditional writes of them.
//!
//! Both are in one file because each holds the other: a [`PlanPiece`] is a stored object that
//! consists of writes.
//!
//! Deciders return lists of [`Write`]s; `store::Txn::add_all` encodes a list as one transaction and
//! is the only code that performs them.
//!
//! **Invariant**: no variant of [`Write`] writes without a compare.

use model::{
    AllocClient, AllocId, AllocServices, Allocation, CsiAttachment, CsiVolume, Deployment,
    DispatchToken, Evaluation, Indexed, IntroductionToken, Job, JobTags, JobTally, Keyring,
    LeaderInfo, Namespace, Node, NodeIntroduction, NodePool, NodeRevocation, PeriodicLaunch,
    ProcessInfo, ScalingEvents, SchedulerConfiguration, SealedVariable, VariableLock, Volume,
    VolumeClaim,
};
use serde::{Deserialize, Serialize};

use crate::key::Key;

/// Operations in one transaction. Beyond 1,000 the rate of keys drops (measured: 167,000 keys/s at
/// 1,000 on one member; on three, 59,000 at 1,000 and 63,000 at 512), and other writers wait longer.
/// etcd is configured for more (`--max-txn-ops`).
pub const TRANSACTION_OPERATIONS: usize = 1_000;

/// Bytes in one transaction that a user's request causes: two thirds of etcd's default limit.
pub const TRANSACTION_BYTES: usize = 1 << 20;

/// A stored object without its key.
#[derive(Clone, Debug, PartialEq)]
pub enum Entity {
    Job(Box<Job>),
    JobVersion(Box<Job>),
    JobStable,
    JobTally(Box<JobTally>),
    JobTags(Box<JobTags>),
    Eval(Box<Evaluation>),
    Alloc(Box<Allocation>),
    AllocClient(Box<AllocClient>),
    Node(Box<Node>),
    Deployment(Box<Deployment>),
    Election(LeaderInfo),
    SchedulerConfig(Box<SchedulerConfiguration>),
    NodePool(Box<NodePool>),
    Namespace(Box<Namespace>),
    Volume(Box<Volume>),
    VolumeClaim(Box<VolumeClaim>),
    CsiVolume(Box<CsiVolume>),
    CsiAttachment(Box<CsiAttachment>),
    PeriodicLaunch(PeriodicLaunch),
    DispatchToken(DispatchToken),
    ScalingEvents(Box<ScalingEvents>),
    PlanPiece(Box<PlanPiece>),
    PlanCommit(PlanCommit),
    IntroductionToken(Box<IntroductionToken>),
    NodeIntroduction(Box<NodeIntroduction>),
    Services(Box<AllocServices>),
    NodeRevocation(Box<NodeRevocation>),
    Process(ProcessInfo),
    Keyring(Box<Keyring>),
    Variable(Box<SealedVariable>),
    VariableLock(Box<VariableLock>),
}

/// A staged part of a plan: the value of `plan-piece/<evaluation>/<n>`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanPiece {
    /// Contains no `Delete`: the stored form cannot express one.
    pub ops: Vec<Write>,
}

/// Commit record of a staged plan: the value of `plan-commit/<evaluation>`.
///
/// With it the plan is committed; it is deleted together with the last piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanCommit {
    /// Number of pieces.
    pub pieces: u32,
    /// Progress within a piece that etcd did not accept in one transaction; missing: no piece is
    /// partly moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Progress>,
}

/// Progress within one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub piece: u32,
    /// Number of its operations that are executed, counted from the first.
    pub ops: u32,
}

impl PlanCommit {
    /// Returns the progress within the piece at `position`, which still exists.
    pub fn progress(&self, position: u32) -> Progress {
        let begun = self.begun.filter(|begun| begun.piece == position);
        begun.unwrap_or(Progress {
            piece: position,
            ops: 0,
        })
    }
}

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Stores a new object; the key must not exist.
    Create { key: Key, entity: Entity },
    /// Replaces an object; the key must not have changed since `modify_index`.
    Update {
        key: Key,
        modify_index: u64,
        entity: Entity,
    },
    /// Deletes an object; the key must not have changed since `modify_index`.
    Delete { key: Key, modify_index: u64 },
    /// Writes nothing; the key must not have changed since `modify_index`.
    RequireUnchanged { key: Key, modify_index: u64 },
    /// Writes nothing; the key must not exist.
    RequireAbsent { key: Key },
}

impl Write {
    /// Creates the object when `modify_index` is 0, and updates it otherwise.
    pub fn put(key: Key, modify_index: u64, entity: Entity) -> Self {
        match modify_index {
            0 => Self::Create { key, entity },
            _ => Self::Update {
                key,
                modify_index,
                entity,
            },
        }
    }

    /// Creates an evaluation under its id.
    pub fn create_eval(eval: Evaluation) -> Self {
        Self::Create {
            key: Key::Eval(eval.id),
            entity: Entity::Eval(Box::new(eval)),
        }
    }

    /// Requires that a job is as it was read.
    pub fn job_unchanged(job: &Indexed<Job>) -> Self {
        Self::RequireUnchanged {
            key: Key::Job(job.value.key()),
            modify_index: job.modify_index,
        }
    }

    /// Requires that a version of a job is as it was read.
    pub fn version_unchanged(version: &Indexed<Job>) -> Self {
        Self::RequireUnchanged {
            key: Key::JobVersion(version.value.key(), version.value.version),
            modify_index: version.modify_index,
        }
    }

    /// Requires that the key is as it was read: absent when `modify_index` is 0, unchanged
    /// otherwise.
    pub fn require(key: Key, modify_index: u64) -> Self {
        match modify_index {
            0 => Self::RequireAbsent { key },
            _ => Self::RequireUnchanged { key, modify_index },
        }
    }

    /// Returns the key that is written or compared.
    pub fn key(&self) -> &Key {
        match self {
            Self::Create { key, .. }
            | Self::Update { key, .. }
            | Self::Delete { key, .. }
            | Self::RequireUnchanged { key, .. }
            | Self::RequireAbsent { key } => key,
        }
    }

    /// Returns the modify index that the key must have; 0: the key must not exist.
    pub fn expected_index(&self) -> u64 {
        match self {
            Self::Update { modify_index, .. }
            | Self::Delete { modify_index, .. }
            | Self::RequireUnchanged { modify_index, .. } => *modify_index,
            Self::Create { .. } | Self::RequireAbsent { .. } => 0,
        }
    }

    /// Returns the stored object; `None` for a deletion or a compare alone.
    pub fn entity(&self) -> Option<&Entity> {
        match self {
            Self::Create { entity, .. } | Self::Update { entity, .. } => Some(entity),
            Self::Delete { .. } | Self::RequireUnchanged { .. } | Self::RequireAbsent { .. } => {
                None
            }
        }
    }

    /// Tells whether this writes nothing: a compare alone.
    pub fn is_compare(&self) -> bool {
        matches!(
            self,
            Self::RequireUnchanged { .. } | Self::RequireAbsent { .. }
        )
    }

    /// Returns the allocation that this creates.
    pub fn created_alloc(&self) -> Option<AllocId> {
        match self {
            Self::Create {
                key: Key::Alloc(id),
                ..
            } => Some(*id),
            _ => None,
        }
    }
}

/// Sets the trace of every evaluation that `writes` create.
///
/// Deciders leave it empty: the trace is that of the request or the loop that performs the writes.
pub fn set_trace_parent(writes: &mut [Write], trace_parent: &str) {
    for write in writes {
        if let Write::Create {
            entity: Entity::Eval(eval),
            ..
        } = write
        {
            trace_parent.clone_into(&mut eval.trace_parent);
        }
    }
}
