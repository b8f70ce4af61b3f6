//! RPCs that dispatch, launch, evaluate and scale jobs.

use proto::v1;

use super::transport::Connection;
use crate::error::Error;

impl Connection {
    /// Creates a child of a parameterized job. Idempotent by its token, which is filled in.
    pub(crate) async fn dispatch(
        &self,
        message: v1::DispatchJobRequest,
    ) -> Result<v1::DispatchJobResponse, Error> {
        self.call("dispatching job", self.api().jobs().dispatch(message))
            .await
    }

    pub(crate) async fn force_periodic(
        &self,
        message: v1::ForcePeriodicJobRequest,
    ) -> Result<v1::ForcePeriodicJobResponse, Error> {
        let doing = "forcing periodic job";
        self.call(doing, self.api().jobs().force_periodic(message))
            .await
    }

    /// Safe to retry: a duplicate evaluation finds nothing to do.
    pub(crate) async fn evaluate_job(
        &self,
        message: v1::EvaluateJobRequest,
    ) -> Result<v1::EvaluateJobResponse, Error> {
        self.call(
            "evaluating job",
            self.api().jobs().evaluate(message).repeatable(),
        )
        .await
    }

    /// Safe to retry: a duplicate only adds a scaling event.
    pub(crate) async fn scale(
        &self,
        message: v1::ScaleJobRequest,
    ) -> Result<v1::ScaleJobResponse, Error> {
        self.call("scaling job", self.api().jobs().scale(message).repeatable())
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
        self.call(&doing, self.api().jobs().get_scale_status(message))
            .await
    }
}
