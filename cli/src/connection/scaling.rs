//! RPCs on scaling policies.

use proto::v1;

use super::transport::Connection;
use crate::error::Error;

impl Connection {
    /// Lists scaling policies, with the token of the next page.
    pub(crate) async fn scaling_policies(
        &self,
        options: v1::QueryOptions,
        job_id: &str,
        of_type: &str,
    ) -> Result<(Vec<v1::ScalingPolicy>, String), Error> {
        let message = v1::ListScalingPoliciesRequest {
            options: Some(options),
            job_id: job_id.to_owned(),
            r#type: of_type.to_owned(),
        };
        let doing = "querying scaling policies";
        let answer: v1::ListScalingPoliciesResponse = self
            .call(doing, self.api().scaling_policies().list(message))
            .await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.policies, next_token))
    }

    pub(crate) async fn scaling_policy(&self, id: &str) -> Result<v1::ScalingPolicy, Error> {
        let message = v1::GetScalingPolicyRequest {
            options: Some(self.options("")),
            policy_id: id.to_owned(),
        };
        let doing = "querying scaling policy";
        let answer: v1::GetScalingPolicyResponse = self
            .call(doing, self.api().scaling_policies().get(message))
            .await?;
        Ok(answer.policy.unwrap_or_default())
    }
}
