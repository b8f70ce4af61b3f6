//! Requests of the monitor, the answers, and the transitions that they cause.

use std::time::Duration;

use proto::v1;

use crate::connection::JobWithAllocs;
use crate::exit::Exit;

/// Longest wait of one blocking query. Most changes end it immediately; this bounds the delay of
/// changes that the index does not cover. Source: the poll interval of Nomad's deployment monitor.
pub(super) const WAIT: Duration = Duration::from_secs(2);

/// Purpose of the watched evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Starts allocations: ends with its deployment.
    Start,
    /// Starts allocations of an earlier version: the failure of the deployment before is no failure.
    Revert,
    /// Stops allocations: a cancelled deployment is no failure.
    Stop,
}

/// A request to the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The evaluation, once it is newer than `after`, and its allocations.
    Evaluation { id: String, after: u64 },
    /// The deployment, once it is newer than `after`, and its allocations if some are not healthy or
    /// with `verbose`.
    Deployment { id: String, after: u64 },
    /// The deployments of a job, once they are newer than `after`.
    Deployments { job_id: String, after: u64 },
    /// The job, with its deployments and allocations.
    Job { job_id: String },
    /// The pause state of the eval-broker.
    IsPaused,
    /// None: the watch has ended.
    Nothing(Exit),
}

/// An answer of the gateway.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Evaluation {
        evaluation: Box<v1::Evaluation>,
        allocs: Vec<v1::Allocation>,
        index: u64,
    },
    Deployment {
        deployment: Box<v1::Deployment>,
        allocs: Vec<v1::Allocation>,
        index: u64,
    },
    Deployments {
        deployments: Vec<v1::Deployment>,
        index: u64,
    },
    Job(Box<JobWithAllocs>),
    IsPaused(bool),
    /// The object does not exist.
    NotFound,
    /// No answer, with the reason; to be retried.
    Lost(String),
    /// A permanent error.
    Refused(String),
}

/// A failed deployment, and the one that reverts the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reverted {
    /// The deployment that reverts.
    pub(super) deployment_id: String,
    /// The version that failed.
    pub(super) failed_version: u64,
    /// The number of the new version, which equals an earlier one.
    pub(super) new_version: u64,
    /// The number of that earlier version; `None` if the deployment does not say.
    pub(super) earlier_version: Option<u64>,
}

/// The transition out of a stage.
#[derive(Debug)]
pub(super) enum Next {
    Stay,
    /// A follow-up evaluation.
    Evaluation(String),
    /// The evaluation has ended, its deployment has not.
    Deployment(String),
    /// The deployment has failed; another one reverts the job.
    Revert(Reverted),
    /// `next`, unless a deployment blocks the job.
    UnlessBlocked {
        job_id: String,
        next: Box<Next>,
    },
    Ended(Exit),
}
