//! Scaling policy RPCs of the fake gateway.

use proto::v1::scaling_policies_server::ScalingPolicies;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, meta, page};

#[tonic::async_trait]
impl ScalingPolicies for Fake {
    async fn list(
        &self,
        request: Request<ListScalingPoliciesRequest>,
    ) -> Answer<ListScalingPoliciesResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListScalingPolicies", &request, options.as_ref())
            .await?;
        let ListScalingPoliciesRequest { job_id, r#type, .. } = request.into_inner();
        let mut policies = self.state().scaling_policies.clone();
        policies.retain(|it| {
            (job_id.is_empty() || it.job_id == job_id) && (r#type.is_empty() || it.r#type == r#type)
        });
        let (policies, meta) = page(policies, options.as_ref());
        Ok(Response::new(ListScalingPoliciesResponse {
            meta,
            policies,
        }))
    }

    async fn get(
        &self,
        request: Request<GetScalingPolicyRequest>,
    ) -> Answer<GetScalingPolicyResponse> {
        self.seen("GetScalingPolicy", &request, None).await?;
        let id = request.into_inner().policy_id;
        let state = self.state();
        let mut found = state.scaling_policies.iter();
        let found = found.find(|it| it.id.starts_with(&id)).cloned();
        let missing = || Status::not_found(format!("no scaling policy {id}"));
        Ok(Response::new(GetScalingPolicyResponse {
            meta: Some(meta(100)),
            policy: Some(found.ok_or_else(missing)?),
        }))
    }
}
