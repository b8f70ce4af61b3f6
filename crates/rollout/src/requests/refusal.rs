//! Refusals of requests for a deployment.

use model::refusal::Kind;
use model::{AllocId, DeploymentId};

/// The largest number of allocations whose health one request sets: as many writes, in one
/// transaction.
pub const MAX_HEALTH_CHANGES: usize = 500;

/// A request is refused. Final only if the snapshot is as new as the request.
///
/// Source of the texts that others may look for: Nomad.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeploymentRefusal {
    #[error(
        "can't {doing} terminal deployment: {id} is {status} already; 'kafila job run FILE' begins a \
         new one"
    )]
    Terminal {
        doing: &'static str,
        id: DeploymentId,
        status: &'static str,
    },
    /// The scheduler is about to end it.
    #[error(
        "the deployment is about to be cancelled: job {job_id:?} is stopped, purged or at another \
         version"
    )]
    Overtaken { job_id: String },
    /// Of the groups that were named, or of all of them.
    #[error("{}", joined(.0))]
    Groups(Vec<GroupProblem>),
    #[error("no canaries to promote: only a deployment with `canary` in its `update` waits for it")]
    NothingToPromote,
    #[error(
        "must specify at least one healthy/unhealthy allocation ID: 'kafila job allocs' lists them"
    )]
    NoHealth,
    #[error("{count} allocations at once are too many: want at most {MAX_HEALTH_CHANGES}")]
    TooManyHealth { count: usize },
    #[error("allocation {0} is named twice: want it as healthy or as unhealthy, once")]
    HealthTwice(AllocId),
    #[error(
        "allocation {0} is not in the deployment: 'kafila deployment status -verbose' lists its \
         allocations"
    )]
    NotInDeployment(AllocId),
    #[error("allocation {0} has ended and cannot be healthy: leave it out")]
    Ended(AllocId),
    #[error(
        "deployment {0} cannot be unblocked: only deployments over several regions are ever blocked, \
         and there is one region"
    )]
    NotBlocked(DeploymentId),
}

impl model::Refusal for DeploymentRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::NoHealth
            | Self::TooManyHealth { .. }
            | Self::HealthTwice(_)
            | Self::NotInDeployment(_) => Kind::Invalid,
            Self::Terminal { .. }
            | Self::Overtaken { .. }
            | Self::Groups(_)
            | Self::NothingToPromote
            | Self::Ended(_)
            | Self::NotBlocked(_) => Kind::Precondition,
        }
    }
}

/// The reason why a task group is not promoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupProblem {
    #[error("Task group {0:?} is not in the deployment")]
    Unknown(String),
    #[error("Task group {0:?} has no canaries to promote")]
    NoCanaries(String),
    #[error("Task group {0:?} is promoted already")]
    Promoted(String),
    #[error("Task group {group:?} has {healthy}/{desired} healthy allocations")]
    Unhealthy {
        group: String,
        healthy: u32,
        desired: u32,
    },
}

fn joined(problems: &[GroupProblem]) -> String {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}
