//! RPCs that change deployments and job versions.
//!
//! Every retried request is idempotent, by a request ID or by itself.

use model::EvalId;
use proto::v1;

use super::transport::Connection;
use crate::error::Error;

impl Connection {
    /// Returns a new ID of an idempotent request.
    pub(crate) fn request_id(&self) -> String {
        EvalId::from_random(self.ids().next_u128()).to_string()
    }

    /// An empty `groups` promotes all groups with canaries.
    pub(crate) async fn promote(
        &self,
        deployment_id: &str,
        groups: &[String],
    ) -> Result<v1::UpdateDeploymentResponse, Error> {
        let message = v1::PromoteDeploymentRequest {
            deployment_id: deployment_id.to_owned(),
            all: groups.is_empty(),
            task_groups: groups.to_vec(),
            request_id: self.request_id(),
        };
        let doing = "promoting deployment";
        self.call(doing, self.api().deployments().promote(message))
            .await
    }

    /// Pauses, or resumes if `pause` is false.
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
        self.call(doing, self.api().deployments().pause(message))
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
        self.call(doing, self.api().deployments().fail(message))
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
            self.api().deployments().unblock(message),
        )
        .await
    }

    pub(crate) async fn revert(
        &self,
        message: v1::RevertJobRequest,
    ) -> Result<v1::RegisterJobResponse, Error> {
        self.call("reverting job", self.api().jobs().revert(message))
            .await
    }

    /// Returns the versions of a job, newest first, with diffs if requested.
    pub(crate) async fn job_versions(
        &self,
        message: v1::ListJobVersionsRequest,
    ) -> Result<v1::ListJobVersionsResponse, Error> {
        let doing = format!("querying versions of job {:?}", message.job_id);
        self.call(&doing, self.api().jobs().list_versions(message))
            .await
    }

    /// Idempotent.
    pub(crate) async fn tag_version(
        &self,
        message: v1::TagJobVersionRequest,
    ) -> Result<v1::TagJobVersionResponse, Error> {
        self.call(
            "tagging job version",
            self.api().jobs().tag_version(message),
        )
        .await
    }

    /// Not idempotent: a retry would not find the tag.
    pub(crate) async fn untag_version(
        &self,
        message: v1::UntagJobVersionRequest,
    ) -> Result<v1::TagJobVersionResponse, Error> {
        self.call(
            "untagging job version",
            self.api().jobs().untag_version(message),
        )
        .await
    }
}
