//! A request about a volume: its context, and its refusal.

use model::refusal::{Kind, Refusal};
use model::{EvalId, Evaluation, FieldErrors, Job, Timestamp, TriggeredBy, VolumeId};

/// The reason why a volume stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    /// Source: Nomad's text, as far as the comma.
    #[error("volume in use: {name}, by allocations {}", .allocs.join(", "))]
    InUse { name: String, allocs: Vec<String> },
}

impl Refusal for VolumeRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::InUse { .. } => Kind::Precondition,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            Self::InUse { .. } => None,
        }
    }
}

/// Inputs of one request that no snapshot has; the same in every attempt.
#[derive(Clone, Debug)]
pub struct VolumeContext {
    /// The id of a new volume.
    pub id: VolumeId,
    pub now: Timestamp,
    pub trace_parent: String,
}

/// Returns an evaluation of `job`, not yet written.
pub(super) fn pending(
    job: &Job,
    trigger: TriggeredBy,
    id: EvalId,
    context: &VolumeContext,
) -> Evaluation {
    let (job_type, priority) = (job.job_type, job.priority);
    let mut eval = Evaluation::pending(id, job.key(), job_type, priority, trigger, context.now);
    eval.trace_parent.clone_from(&context.trace_parent);
    eval
}
