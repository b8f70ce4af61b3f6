//! RPCs on scaling policies.

use proto::v1;
use proto::v1::scaling_policies_client::ScalingPoliciesClient;

use super::transport::{Connection, rpc};
use crate::error::Error;

impl Connection {
    pub(crate) async fn scaling_policies(
        &self,
        job_id: &str,
        of_type: &str,
    ) -> Result<Vec<v1::ScalingPolicy>, Error> {
        let message = v1::ListScalingPoliciesRequest {
            options: Some(self.options(self.namespace())),
            job_id: job_id.to_owned(),
            r#type: of_type.to_owned(),
        };
        let doing = "querying scaling policies";
        let answer: v1::ListScalingPoliciesResponse = self
            .call(doing, message, rpc!(ScalingPoliciesClient.list))
            .await?;
        Ok(answer.policies)
    }

    pub(crate) async fn scaling_policy(&self, id: &str) -> Result<v1::ScalingPolicy, Error> {
        let message = v1::GetScalingPolicyRequest {
            options: Some(self.options("")),
            policy_id: id.to_owned(),
        };
        let doing = "querying scaling policy";
        let answer: v1::GetScalingPolicyResponse = self
            .call(doing, message, rpc!(ScalingPoliciesClient.get))
            .await?;
        Ok(answer.policy.unwrap_or_default())
    }
}
