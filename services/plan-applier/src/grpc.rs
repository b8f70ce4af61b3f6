//! The RPC for plans: decodes, passes the plan to the leader's loop, encodes.

use std::time::Duration;

use model::{FieldErrors, Plan};
use proto::internal::v1::plan_applier_server::{PlanApplier, PlanApplierServer};
use proto::internal::v1::{SubmitPlanRequest, SubmitPlanResponse};
use service_kit::SpanParent as _;
use store::Replica;
use tonic::{Request, Response, Status};
use tracing::{Instrument as _, info_span};

use crate::SERVICE;
use crate::submission_queue::{SubmissionQueue, SubmitError};

/// Timeout for the replica to reach the snapshot of a plan.
/// Source: Nomad's public behaviour.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(10);

/// The RPCs of this service.
pub(crate) struct Grpc {
    pub(crate) submissions: SubmissionQueue,
    pub(crate) replica: Replica,
}

impl Grpc {
    pub(crate) fn into_server(self) -> PlanApplierServer<Self> {
        PlanApplierServer::new(self)
            .max_decoding_message_size(proto::MAX_PLAN_BYTES)
            .max_encoding_message_size(proto::MAX_PLAN_BYTES)
    }

    /// Returns the status of a standby, with the leader that this replica knows.
    fn not_leading(&self) -> Status {
        let leader = self.replica.leader(SERVICE);
        proto::status::not_leader(leader.as_ref().map(|leader| leader.address.as_str()))
    }

    async fn submit_plan(&self, plan: Plan) -> Result<SubmitPlanResponse, Status> {
        if !self.submissions.is_open() {
            return Err(self.not_leading());
        }
        // On an older snapshot, the state that the scheduler saw would look changed.
        let shown = self
            .replica
            .wait_for(plan.snapshot_index, SNAPSHOT_TIMEOUT)
            .await;
        shown.map_err(|error| Status::unavailable(error.to_string()))?;
        let span = tracing::Span::current();
        match self.submissions.submit(Box::new(plan), span).await {
            Ok(result) => Ok((&result).into()),
            Err(SubmitError::NotLeading) => Err(self.not_leading()),
            Err(error @ SubmitError::Overloaded) => {
                Err(Status::resource_exhausted(error.to_string()))
            }
            Err(error @ SubmitError::TermEnded) => Err(Status::unavailable(error.to_string())),
        }
    }
}

#[tonic::async_trait]
impl PlanApplier for Grpc {
    async fn submit(
        &self,
        request: Request<SubmitPlanRequest>,
    ) -> Result<Response<SubmitPlanResponse>, Status> {
        let wire = request.into_inner().plan;
        let wire = wire.ok_or_else(|| Status::invalid_argument("plan: missing"))?;
        let trace_parent = wire.trace_parent.clone();
        let plan: Plan = wire
            .try_into()
            .map_err(|errors: FieldErrors| Status::invalid_argument(errors.to_string()))?;
        let span = info_span!(
            "submit_plan",
            eval_id = %plan.eval_id,
            job_id = %plan.job.job_id,
            namespace = %plan.job.namespace,
            index = plan.snapshot_index,
        );
        span.set_parent_from(&trace_parent);
        self.submit_plan(plan)
            .instrument(span)
            .await
            .map(Response::new)
    }
}
