//! Refusals of requests about jobs.

use model::FieldErrors;

use super::marks::VersionRefusal;
use super::missing::NoSuchJob;
use model::refusal::{Kind, Refusal};

/// The reason why a request about a job is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(transparent)]
    Version(#[from] VersionRefusal),
    /// Source: Nomad's texts, which its command line and Terraform match.
    #[error("Enforcing job modify index {want}: {found}")]
    CheckIndex { want: u64, found: FoundIndex },
    #[error(
        "{open} evaluations are pending or blocked, the most that this cluster accepts: try again \
         later"
    )]
    Overloaded { open: usize },
    /// Source: Nomad's text.
    #[error(
        "Job registration, dispatch, and scale are disabled by the scheduler configuration: \
         reject_job_registration is true"
    )]
    Rejected,
    /// Source of the texts: Nomad's.
    #[error("{message}")]
    State { message: String },
    #[error(transparent)]
    NoSuchJob(#[from] NoSuchJob),
    /// Of dry runs only: a registration would be committed, and its evaluation fail.
    #[error("the job could be registered, but its evaluation would fail: {reason}")]
    Unschedulable { reason: String },
}

impl Refusal for JobRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::Version(refusal) => refusal.kind(),
            Self::CheckIndex { .. } => Kind::Outdated,
            Self::Overloaded { .. } => Kind::Overloaded,
            Self::Rejected => Kind::Denied,
            Self::State { .. } | Self::Unschedulable { .. } => Kind::Precondition,
            Self::NoSuchJob(refusal) => refusal.kind(),
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            Self::Version(refusal) => refusal.field_errors(),
            _ => None,
        }
    }
}

impl JobRefusal {
    /// Refuses because of the job's state.
    pub(super) fn state(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::State { message }
    }
}

/// The state that contradicts a check index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoundIndex {
    #[error("job already exists")]
    Exists,
    #[error("job does not exist")]
    Missing,
    #[error("job exists with conflicting job modify index: {0}")]
    Other(u64),
}
