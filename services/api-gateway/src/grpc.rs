//! The RPCs: decodes requests, asks the rest of the crate, encodes answers. The only place that
//! says [`Status`].

mod allocations;
mod deployment_updates;
mod deployments;
mod evaluations;
mod events;
mod explain;
mod job_operations;
mod job_versions;
mod jobs;
mod namespaces;
mod node_pools;
mod node_sessions;
mod nodes;
mod operator;
mod plan;
mod scaling_policies;
mod volumes;

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use model::{FieldErrors, JobKey};
use proto::internal::v1::node_sessions_server::{self, NodeSessionsServer};
use proto::status;
use proto::v1::allocations_server::{self, AllocationsServer};
use proto::v1::deployments_server::{self, DeploymentsServer};
use proto::v1::evaluations_server::{self, EvaluationsServer};
use proto::v1::events_server::{self, EventsServer};
use proto::v1::jobs_server::{self, JobsServer};
use proto::v1::namespaces_server::{self, NamespacesServer};
use proto::v1::node_pools_server::{self, NodePoolsServer};
use proto::v1::nodes_server::{self, NodesServer};
use proto::v1::operator_server::{self, OperatorServer};
use proto::v1::scaling_policies_server::{self, ScalingPoliciesServer};
use proto::v1::volumes_server::{self, VolumesServer};
use proto::v1::{QueryMeta, QueryOptions};
use state::{Snapshot, Table};
use tonic::service::Routes;
use tonic::{Code, Request, Status};

use crate::admission::Refusal;
use crate::error::Error;
use crate::gateway::Shared;
use crate::reads::blocking::{self, Query};
use crate::reads::options;
use crate::turns::TurnError;

/// The largest request accepted: a job of the largest size that can be stored, a node's reports of
/// a thousand allocations with ten events each.
const MAX_REQUEST_BYTES: usize = 16 << 20;

/// When to try again after being refused for overload: a queue of a million evaluations empties by
/// tens of thousands a second, so seconds make a difference.
const OVERLOAD_RETRY_AFTER: Duration = Duration::from_secs(5);
/// When to try again while the store is away: about as long as it takes to elect a leader.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(1);

/// An answer in many parts.
pub type Parts<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Implements every service of a gateway. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    gateway: Shared,
}

/// The names of all services in [`routes`].
pub(crate) const RPC_SERVICES: [&str; 12] = [
    jobs_server::SERVICE_NAME,
    allocations_server::SERVICE_NAME,
    evaluations_server::SERVICE_NAME,
    events_server::SERVICE_NAME,
    nodes_server::SERVICE_NAME,
    namespaces_server::SERVICE_NAME,
    node_pools_server::SERVICE_NAME,
    deployments_server::SERVICE_NAME,
    operator_server::SERVICE_NAME,
    scaling_policies_server::SERVICE_NAME,
    volumes_server::SERVICE_NAME,
    node_sessions_server::SERVICE_NAME,
];

/// Returns everything a gateway answers.
pub fn routes(gateway: Shared) -> Routes {
    let api = Api { gateway };
    Routes::new(JobsServer::new(api.clone()).max_decoding_message_size(MAX_REQUEST_BYTES))
        .add_service(AllocationsServer::new(api.clone()))
        .add_service(EvaluationsServer::new(api.clone()))
        .add_service(EventsServer::new(api.clone()))
        .add_service(NodesServer::new(api.clone()))
        .add_service(NamespacesServer::new(api.clone()))
        .add_service(NodePoolsServer::new(api.clone()))
        .add_service(DeploymentsServer::new(api.clone()))
        .add_service(OperatorServer::new(api.clone()))
        .add_service(ScalingPoliciesServer::new(api.clone()))
        .add_service(VolumesServer::new(api.clone()))
        .add_service(NodeSessionsServer::new(api).max_decoding_message_size(MAX_REQUEST_BYTES))
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        if let Some(errors) = error.field_errors() {
            return status::invalid(errors.clone());
        }
        match error {
            Error::TooLarge(_) => status::invalid_field("job", error.message()),
            Error::Admission(Refusal::Overloaded { .. })
            | Error::DryRun(TurnError::Late { .. })
            | Error::EventStreams { .. }
            | Error::Explanation(TurnError::Late { .. }) => {
                status::exhausted(error.message(), OVERLOAD_RETRY_AFTER)
            }
            error if error.code() == Code::Unavailable => {
                status::unavailable(error.message(), STORE_RETRY_AFTER)
            }
            error => Self::new(error.code(), error.message()),
        }
    }
}

/// A question made of functions: what a handler asks.
struct Ask<'a, A, I, F> {
    tables: &'a [Table],
    index: I,
    answer: F,
    marker: std::marker::PhantomData<fn() -> A>,
}

impl<A, I, F> Query for Ask<'_, A, I, F>
where
    I: Fn(&Snapshot) -> u64,
    F: Fn(&Snapshot) -> Result<(A, String), Error>,
{
    type Answer = A;

    fn tables(&self) -> &[Table] {
        self.tables
    }

    fn index(&self, snapshot: &Snapshot) -> u64 {
        (self.index)(snapshot)
    }

    fn answer(&self, snapshot: &Snapshot) -> Result<(A, String), Error> {
        (self.answer)(snapshot)
    }
}

impl Api {
    /// Answers a question: the result's index, the result and a list's next token.
    async fn ask<A>(
        &self,
        options: &QueryOptions,
        caller_timeout: Option<Duration>,
        tables: &[Table],
        index: impl Fn(&Snapshot) -> u64,
        answer: impl Fn(&Snapshot) -> Result<(A, String), Error>,
    ) -> Result<(A, Option<QueryMeta>), Error> {
        let mode = options::mode(options)?;
        let query = Ask {
            tables,
            index,
            answer,
            marker: std::marker::PhantomData,
        };
        let (answer, meta) = blocking::answer(&self.gateway, mode, caller_timeout, &query).await?;
        Ok((answer, Some(meta)))
    }
}

/// Takes a request apart: what is asked, and for how long its caller waits.
fn open<T>(request: Request<T>) -> (T, Option<Duration>) {
    let timeout = options::caller_timeout(request.metadata());
    (request.into_inner(), timeout)
}

/// Returns the job that a read is about.
fn job_key(options: &QueryOptions, job_id: &str) -> Result<JobKey, FieldErrors> {
    options::job_key("options.namespace", &options.namespace, job_id)
}

/// Says that there is no such job, and which ones begin alike.
fn no_such_job(snapshot: &Snapshot, key: &JobKey) -> Error {
    /// How many similar names are shown.
    const MAX_NAMED: usize = 5;
    let alike: Vec<&str> = snapshot
        .jobs()
        .map(|job| &job.value)
        .filter(|job| *job.namespace == *key.namespace && job.id.starts_with(&*key.job_id))
        .map(|job| job.id.as_str())
        .take(MAX_NAMED)
        .collect();
    let hint = if alike.is_empty() {
        String::new()
    } else {
        format!("; there is {}", alike.join(", "))
    };
    Error::NoSuchJob {
        namespace: key.namespace.to_string(),
        job_id: key.job_id.to_string(),
        hint,
    }
}
