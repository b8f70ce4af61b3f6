//! What is asked of deployments and of jobs' versions.
//!
//! Each request that is made again when no answer came has an id that makes it safe, or is safe by
//! itself.

use model::EvalId;
use proto::v1;
use proto::v1::deployments_client::DeploymentsClient;
use proto::v1::jobs_client::JobsClient;
use service_kit::TracedChannel;

use super::{Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

fn deployments(channel: TracedChannel) -> DeploymentsClient<TracedChannel> {
    DeploymentsClient::new(channel)
}

fn jobs(channel: TracedChannel) -> JobsClient<TracedChannel> {
    JobsClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

impl Connection {
    /// Returns the id of a request that may be made again.
    pub(crate) fn request_id(&self) -> String {
        EvalId::from_random(self.ids.next_u128()).to_string()
    }

    /// `groups`: none for all that wait.
    pub(crate) async fn promote(
        &self,
        deployment_id: &str,
        groups: &[String],
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let message = v1::PromoteDeploymentRequest {
            deployment_id: deployment_id.to_owned(),
            all: groups.is_empty(),
            groups: groups.to_vec(),
            request_id: self.request_id(),
        };
        let doing = "promoting deployment";
        self.call_until_answered(doing, message, |channel, request| async move {
            deployments(channel).promote(request).await
        })
        .await
    }

    /// `pause`: false to resume.
    pub(crate) async fn pause(
        &self,
        deployment_id: &str,
        pause: bool,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let message = v1::PauseDeploymentRequest {
            deployment_id: deployment_id.to_owned(),
            pause,
            request_id: self.request_id(),
        };
        let doing = if pause {
            "pausing deployment"
        } else {
            "resuming deployment"
        };
        self.call_until_answered(doing, message, |channel, request| async move {
            deployments(channel).pause(request).await
        })
        .await
    }

    pub(crate) async fn fail(
        &self,
        deployment_id: &str,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let message = v1::FailDeploymentRequest {
            deployment_id: deployment_id.to_owned(),
            request_id: self.request_id(),
        };
        let doing = "failing deployment";
        self.call_until_answered(doing, message, |channel, request| async move {
            deployments(channel).fail(request).await
        })
        .await
    }

    pub(crate) async fn unblock(
        &self,
        deployment_id: &str,
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let message = v1::UnblockDeploymentRequest {
            deployment_id: deployment_id.to_owned(),
        };
        self.call(
            "unblocking deployment",
            message,
            |channel, request| async move { deployments(channel).unblock(request).await },
        )
        .await
    }

    pub(crate) async fn revert(
        &self,
        message: v1::RevertJobRequest,
    ) -> Result<v1::RegisterJobResponse, Error> {
        self.call_until_answered("reverting job", message, |channel, request| async move {
            jobs(channel).revert(request).await
        })
        .await
    }

    /// Returns a job's versions, newest first, and what differs where that was asked for.
    pub(crate) async fn job_versions(
        &self,
        message: v1::ListJobVersionsRequest,
    ) -> Result<v1::ListJobVersionsResponse, Error> {
        let doing = format!("querying versions of job {:?}", message.job_id);
        self.call(&doing, message, |channel, request| async move {
            jobs(channel).list_versions(request).await
        })
        .await
    }

    /// Asked twice, it changes nothing the second time.
    pub(crate) async fn tag_version(
        &self,
        message: v1::TagJobVersionRequest,
    ) -> Result<v1::TagJobVersionResponse, Error> {
        self.call_until_answered(
            "tagging job version",
            message,
            |channel, request| async move { jobs(channel).tag_version(request).await },
        )
        .await
    }

    /// Asked twice, it would not find the tag any more.
    pub(crate) async fn untag_version(
        &self,
        message: v1::UntagJobVersionRequest,
    ) -> Result<v1::TagJobVersionResponse, Error> {
        self.call(
            "untagging job version",
            message,
            |channel, request| async move { jobs(channel).untag_version(request).await },
        )
        .await
    }
}
