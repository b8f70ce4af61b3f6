//! RPCs that dispatch, launch, evaluate and scale jobs.

use proto::v1;
use proto::v1::jobs_client::JobsClient;

use super::transport::{Connection, rpc};
use crate::error::Error;

impl Connection {
    /// Creates a child of a parameterized job; idempotent only with an idempotency token.
    pub(crate) async fn dispatch(
        &self,
        message: v1::DispatchJobRequest,
    ) -> Result<v1::DispatchJobResponse, Error> {
        let doing = "dispatching job";
        if message.idempotency_token.is_empty() {
            return self.call(doing, message, rpc!(JobsClient.dispatch)).await;
        }
        self.call_until_answered(doing, message, rpc!(JobsClient.dispatch))
            .await
    }

    pub(crate) async fn force_periodic(
        &self,
        message: v1::ForcePeriodicJobRequest,
    ) -> Result<v1::ForcePeriodicJobResponse, Error> {
        let doing = "forcing periodic job";
        self.call(doing, message, rpc!(JobsClient.force_periodic))
            .await
    }

    /// Safe to retry: a duplicate evaluation finds nothing to do.
    pub(crate) async fn evaluate_job(
        &self,
        message: v1::EvaluateJobRequest,
    ) -> Result<v1::EvaluateJobResponse, Error> {
        self.call_until_answered("evaluating job", message, rpc!(JobsClient.evaluate))
            .await
    }

    /// Safe to retry: a duplicate only adds a scaling event.
    pub(crate) async fn scale(
        &self,
        message: v1::ScaleJobRequest,
    ) -> Result<v1::ScaleJobResponse, Error> {
        self.call_until_answered("scaling job", message, rpc!(JobsClient.scale))
            .await
    }

    pub(crate) async fn scale_status(
        &self,
        namespace: &str,
        job_id: &str,
    ) -> Result<v1::GetJobScaleStatusResponse, Error> {
        let message = v1::GetJobScaleStatusRequest {
            options: Some(self.options(namespace)),
            job_id: job_id.to_owned(),
        };
        let doing = format!("querying scale status of job {job_id:?}");
        self.call(&doing, message, rpc!(JobsClient.get_scale_status))
            .await
    }
}
