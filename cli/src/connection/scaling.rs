//! What is asked about scaling policies.

use proto::v1;
use proto::v1::scaling_policies_client::ScalingPoliciesClient;

use super::{Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

fn client(
    channel: service_kit::TracedChannel,
) -> ScalingPoliciesClient<service_kit::TracedChannel> {
    ScalingPoliciesClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

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
            .call(doing, message, |channel, request| async move {
                client(channel).list(request).await
            })
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
            .call(doing, message, |channel, request| async move {
                client(channel).get(request).await
            })
            .await?;
        Ok(answer.policy.unwrap_or_default())
    }
}
