//! What is asked of jobs beside running and stopping them.

use proto::v1;

use super::Connection;
use super::job::client;
use crate::error::Error;

impl Connection {
    /// Makes a child of a parameterized job; asked twice only if a token makes it one child.
    pub(crate) async fn dispatch(
        &self,
        message: v1::DispatchJobRequest,
    ) -> Result<v1::DispatchJobResponse, Error> {
        let doing = "dispatching job";
        if message.idempotency_token.is_empty() {
            return self
                .call(doing, message, |channel, request| async move {
                    client(channel).dispatch(request).await
                })
                .await;
        }
        self.call_until_answered(doing, message, |channel, request| async move {
            client(channel).dispatch(request).await
        })
        .await
    }

    pub(crate) async fn force_periodic(
        &self,
        message: v1::ForcePeriodicJobRequest,
    ) -> Result<v1::ForcePeriodicJobResponse, Error> {
        let doing = "forcing periodic job";
        self.call(doing, message, |channel, request| async move {
            client(channel).force_periodic(request).await
        })
        .await
    }

    /// Asked twice, it makes one more evaluation that finds nothing to do.
    pub(crate) async fn evaluate_job(
        &self,
        message: v1::EvaluateJobRequest,
    ) -> Result<v1::EvaluateJobResponse, Error> {
        self.call_until_answered("evaluating job", message, |channel, request| async move {
            client(channel).evaluate(request).await
        })
        .await
    }

    /// Asked twice, it records the count twice.
    pub(crate) async fn scale(
        &self,
        message: v1::ScaleJobRequest,
    ) -> Result<v1::ScaleJobResponse, Error> {
        self.call_until_answered("scaling job", message, |channel, request| async move {
            client(channel).scale(request).await
        })
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
        self.call(&doing, message, |channel, request| async move {
            client(channel).get_scale_status(request).await
        })
        .await
    }
}
