//! What can go wrong with a request, and which gRPC code each is.

use std::sync::Arc;
use std::time::Duration;

use model::FieldErrors;
use rollout::user;
use service_kit::run::chain;
use store::{TxnError, WaitError};
use tonic::Code;

use crate::admission::marks;
use crate::nodes::{gate, reports};
use crate::reads::prefix;
use crate::settings::{
    eligibility, evaluations, namespaces, node_pools, scheduler_config, volumes,
};
use crate::turns::TurnError;
use crate::{admission, logs};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(transparent)]
    Admission(#[from] admission::Refusal),
    #[error(transparent)]
    SchedulerConfig(#[from] scheduler_config::Refusal),
    #[error(transparent)]
    Eligibility(#[from] eligibility::Refusal),
    #[error(transparent)]
    Evaluations(#[from] evaluations::Refusal),
    #[error(transparent)]
    Namespace(#[from] namespaces::Refusal),
    #[error(transparent)]
    NodePool(#[from] node_pools::Refusal),
    #[error(transparent)]
    Volume(#[from] volumes::Refusal),
    #[error(transparent)]
    Session(#[from] gate::Refusal),
    #[error(transparent)]
    Reports(#[from] reports::Refusal),
    #[error(transparent)]
    NotFound(#[from] prefix::NotFound),
    #[error(transparent)]
    Deployment(#[from] rollout::user::Refusal),
    #[error(
        "deployment {deployment_id} cannot be unblocked: only deployments over several regions \
         are ever blocked, and there is one region"
    )]
    NotBlocked { deployment_id: model::DeploymentId },
    #[error("no job {job_id:?} in namespace {namespace:?}{hint}")]
    NoSuchJob {
        namespace: String,
        job_id: String,
        hint: String,
    },
    #[error("job {job_id:?} has no version {version}: it keeps {kept}")]
    NoSuchVersion {
        job_id: String,
        version: u64,
        kept: String,
    },
    #[error(transparent)]
    Logs(#[from] logs::Refusal),
    /// Nothing was written.
    #[error("cannot reach the store")]
    Store(#[source] store::Error),
    #[error("no answer came from the store: what was asked for may have been done; ask again")]
    Unknown(#[source] store::Error),
    #[error("cannot get fresh state")]
    Wait(#[from] WaitError),
    /// Stale reads still work.
    #[error("cannot answer with fresh state: ask again")]
    NoFreshState(#[source] Arc<store::Error>),
    #[error("the store did not tell its revision in time: ask again")]
    NoRevision,
    #[error(
        "this gateway is at revision {applied} and the node has seen {seen}: try another gateway"
    )]
    Behind { seen: u64, applied: u64 },
    #[error("too large to be stored in one piece")]
    TooLarge(#[source] TxnError),
    #[error("others keep changing {what}: try again")]
    Contended { what: String },
    /// Perhaps stored, perhaps not: the node sends them again, and they are stored once.
    #[error("cannot store the reports: {reason}")]
    ReportsUnstored { reason: String },
    #[error("the report of allocation {alloc_id} cannot be stored: {reason}")]
    ReportRefused {
        alloc_id: model::AllocId,
        reason: String,
    },
    #[error("a newer stream of this node has taken this one's place")]
    Replaced,
    #[error("cannot try the job out")]
    DryRun(#[from] TurnError),
    #[error("cannot explain the evaluation")]
    Explanation(#[source] TurnError),
    #[error("this gateway tells {most} callers of events, and no more: ask another")]
    EventStreams { most: usize },
    #[error(
        "index {index} was never reached, the newest is {newest}: was the store restored from a \
         backup? Read what there is, and go on from index {}",
        newest + 1
    )]
    EventsAhead { index: u64, newest: u64 },
    #[error(
        "index {next} is no longer kept{}: read what there is, and go on from its index",
        oldest_kept(*oldest)
    )]
    EventsForgotten { next: u64, oldest: u64 },
    #[error(
        "nothing of the stream was taken for {}s: go on after the last index that came",
        patience.as_secs_f64()
    )]
    EventsSlow { patience: Duration },
    #[error("the stream of events broke: go on from index {next}")]
    EventsCut {
        next: u64,
        #[source]
        source: store::Error,
    },
    #[error("this gateway is shutting down: ask another")]
    Draining,
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        if error.is_unknown() {
            Self::Unknown(error)
        } else {
            Self::Store(error)
        }
    }
}

impl Error {
    pub fn code(&self) -> Code {
        match self {
            Self::Invalid(_)
            | Self::Admission(
                admission::Refusal::Invalid(_)
                | admission::Refusal::Version(marks::Refusal::Invalid(_)),
            )
            | Self::Deployment(
                user::Refusal::NoHealth
                | user::Refusal::TooManyHealth { .. }
                | user::Refusal::HealthTwice(_)
                | user::Refusal::NotInDeployment(_),
            )
            | Self::Session(gate::Refusal::Invalid(_))
            | Self::NodePool(
                node_pools::Refusal::Invalid(_) | node_pools::Refusal::BuiltIn { .. },
            )
            | Self::Evaluations(evaluations::Refusal::Invalid(_))
            | Self::Namespace(namespaces::Refusal::Invalid(_) | namespaces::Refusal::Default)
            | Self::Volume(volumes::Refusal::Invalid(_))
            | Self::Reports(reports::Refusal::Invalid(_))
            | Self::NotFound(prefix::NotFound::Invalid(_))
            | Self::Logs(logs::Refusal::Invalid(_))
            | Self::ReportRefused { .. }
            | Self::TooLarge(_) => Code::InvalidArgument,
            Self::Admission(
                admission::Refusal::CheckIndex { .. }
                | admission::Refusal::Version(marks::Refusal::PriorVersion { .. }),
            )
            | Self::SchedulerConfig(scheduler_config::Refusal::CheckIndex { .. })
            | Self::Namespace(namespaces::Refusal::CheckIndex { .. })
            | Self::Contended { .. }
            | Self::Replaced => Code::Aborted,
            Self::Admission(admission::Refusal::Overloaded { .. })
            | Self::DryRun(TurnError::Late { .. })
            | Self::EventStreams { .. }
            | Self::EventsSlow { .. }
            | Self::Explanation(TurnError::Late { .. }) => Code::ResourceExhausted,
            Self::DryRun(TurnError::CutShort(_)) | Self::Explanation(TurnError::CutShort(_)) => {
                Code::Internal
            }
            Self::EventsAhead { .. } | Self::EventsForgotten { .. } => Code::OutOfRange,
            Self::Session(gate::Refusal::Unknown(_))
            | Self::NodePool(node_pools::Refusal::NotFound { .. })
            | Self::Namespace(namespaces::Refusal::NotFound { .. })
            | Self::Evaluations(evaluations::Refusal::NotFound { .. })
            | Self::NotFound(prefix::NotFound::None { .. })
            | Self::Admission(admission::Refusal::Version(
                marks::Refusal::NoVersion { .. } | marks::Refusal::NoTag { .. },
            ))
            | Self::Admission(admission::Refusal::NoSuchJob { .. })
            | Self::NoSuchJob { .. }
            | Self::NoSuchVersion { .. } => Code::NotFound,
            Self::Admission(admission::Refusal::Rejected)
            | Self::Session(gate::Refusal::WrongSecret(_))
            | Self::Reports(reports::Refusal::AnotherNodes { .. }) => Code::PermissionDenied,
            Self::Admission(admission::Refusal::Version(marks::Refusal::TagTaken { .. })) => {
                Code::AlreadyExists
            }
            Self::Admission(
                admission::Refusal::Unschedulable { .. }
                | admission::Refusal::State { .. }
                | admission::Refusal::Version(
                    marks::Refusal::CurrentVersion | marks::Refusal::TooManyTags { .. },
                ),
            )
            | Self::Deployment(_)
            | Self::NotBlocked { .. }
            | Self::Eligibility(eligibility::Refusal::Draining { .. })
            | Self::NodePool(
                node_pools::Refusal::HasNodes { .. } | node_pools::Refusal::HasJobs { .. },
            )
            | Self::Namespace(namespaces::Refusal::InUse { .. })
            | Self::Evaluations(
                evaluations::Refusal::NotPaused | evaluations::Refusal::NotSafe { .. },
            )
            | Self::Volume(volumes::Refusal::InUse { .. })
            | Self::Reports(reports::Refusal::NodeAway { .. })
            | Self::Logs(logs::Refusal::NotStarted { .. } | logs::Refusal::NodeGone { .. }) => {
                Code::FailedPrecondition
            }
            Self::Logs(logs::Refusal::NodeAway { .. } | logs::Refusal::Unreachable { .. })
            | Self::Store(_)
            | Self::Unknown(_)
            | Self::Wait(_)
            | Self::NoFreshState(_)
            | Self::NoRevision
            | Self::ReportsUnstored { .. }
            | Self::Behind { .. }
            | Self::EventsCut { .. }
            | Self::Draining => Code::Unavailable,
        }
    }

    /// Returns the fields that are wrong, when that is what it is about.
    pub fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors)
            | Self::Admission(
                admission::Refusal::Invalid(errors)
                | admission::Refusal::Version(marks::Refusal::Invalid(errors)),
            )
            | Self::Session(gate::Refusal::Invalid(errors))
            | Self::NodePool(node_pools::Refusal::Invalid(errors))
            | Self::Namespace(namespaces::Refusal::Invalid(errors))
            | Self::Evaluations(evaluations::Refusal::Invalid(errors))
            | Self::Volume(volumes::Refusal::Invalid(errors))
            | Self::Reports(reports::Refusal::Invalid(errors))
            | Self::NotFound(prefix::NotFound::Invalid(errors))
            | Self::Logs(logs::Refusal::Invalid(errors)) => Some(errors),
            _ => None,
        }
    }

    /// Returns the message with its causes, for people.
    pub fn message(&self) -> String {
        chain(self)
    }
}

fn oldest_kept(revision: u64) -> String {
    match revision {
        0 => String::new(),
        oldest => format!(", the oldest is {oldest}"),
    }
}

#[cfg(test)]
mod tests {
    use store::{Client, ClientOptions};

    use super::*;

    #[tokio::test]
    async fn a_store_that_cannot_be_reached_is_told_in_words_for_users() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let nobody = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let client = Client::connect(std::slice::from_ref(&nobody), ClientOptions::default())
            .await
            .unwrap();
        let failure = client.current_revision().await.unwrap_err();
        let message = Error::NoFreshState(Arc::new(failure)).message();
        assert!(message.contains(&nobody), "{message}");
        assert!(
            !message.contains("::") && !message.contains("stale"),
            "{message}"
        );
    }
}
