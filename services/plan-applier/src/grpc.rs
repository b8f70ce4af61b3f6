//! Takes plans: decode, hand to the leader's loop, encode.

use std::time::Duration;

use model::{FieldErrors, Plan};
use proto::internal::v1::plan_applier_server::{PlanApplier, PlanApplierServer};
use proto::internal::v1::{SubmitPlanRequest, SubmitPlanResponse};
use service_kit::SpanParent as _;
use store::Replica;
use tonic::{Request, Response, Status};
use tracing::{Instrument as _, info_span};

use crate::SERVICE;
use crate::desk::{Desk, SubmitError};

/// How long the replica may take to show the snapshot that a plan was made on.
/// Source: Nomad's public behaviour.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(10);

/// A plan of 50,000 placements, the most that a job may ask for, at some 500 bytes each, twice.
const MAX_PLAN_BYTES: usize = 64 << 20;

/// The RPCs of this service.
pub(crate) struct Grpc {
    pub(crate) desk: Desk,
    pub(crate) replica: Replica,
}

impl Grpc {
    pub(crate) fn into_server(self) -> PlanApplierServer<Self> {
        PlanApplierServer::new(self)
            .max_decoding_message_size(MAX_PLAN_BYTES)
            .max_encoding_message_size(MAX_PLAN_BYTES)
    }

    /// Says who leads instead, as far as this replica knows.
    fn not_leading(&self) -> Status {
        let leader = self.replica.leader(SERVICE);
        let hint = leader.map_or_else(String::new, |leader| format!("; {} does", leader.address));
        Status::failed_precondition(format!("this replica does not lead{hint}"))
    }

    async fn submit_plan(&self, plan: Plan) -> Result<SubmitPlanResponse, Status> {
        if !self.desk.is_open() {
            return Err(self.not_leading());
        }
        // What the scheduler saw must not look like a change to whoever checks it.
        let shown = self
            .replica
            .wait_for(plan.snapshot_index, SNAPSHOT_PATIENCE)
            .await;
        shown.map_err(|error| Status::unavailable(error.to_string()))?;
        let span = tracing::Span::current();
        match self.desk.submit(Box::new(plan), span).await {
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
