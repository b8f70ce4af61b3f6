//! `kafila.v1.ScalingPolicies`, derived from the jobs.

use listing::{ScalingPolicy, scaling_policies, scaling_policy};
use model::scaling::Scaling;
use proto::v1;
use proto::v1::scaling_policies_server::ScalingPolicies;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};

use super::query::{Api, List, Read, open};

const TABLES: [Table; 1] = [Table::Jobs];

#[tonic::async_trait]
impl ScalingPolicies for Api {
    async fn list(
        &self,
        request: Request<v1::ListScalingPoliciesRequest>,
    ) -> Result<Response<v1::ListScalingPoliciesResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<String>::new(request.options, timeout)?.by_id()?;
        let (job_id, wanted) = (&request.job_id, &request.r#type);
        let answer = |snapshot: &Snapshot| {
            let found = scaling_policies(snapshot).filter(|found| {
                let job = &found.job.value;
                list.has_namespace(&job.namespace)
                    && (job_id.is_empty() || job.id == *job_id)
                    && (wanted.is_empty() || wanted == Scaling::HORIZONTAL)
                    && list.has_id(found.id)
            });
            let keyed = found.map(|found| (found.id.to_string(), found));
            Ok(list.page(keyed, |found| view(&found)))
        };
        let (policies, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListScalingPoliciesResponse {
            meta,
            policies,
        }))
    }

    async fn get(
        &self,
        request: Request<v1::GetScalingPolicyRequest>,
    ) -> Result<Response<v1::GetScalingPolicyResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let find = |snapshot: &Snapshot| Ok(view(&scaling_policy(snapshot, &request.policy_id)?));
        let index = |_: &Snapshot, found: &v1::ScalingPolicy| found.modify_index;
        let show = |_: &Snapshot, found: &v1::ScalingPolicy| found.clone();
        let (policy, meta) = Api::get(self, &read, &TABLES, find, index, show).await?;
        Ok(Response::new(v1::GetScalingPolicyResponse {
            meta,
            policy: Some(policy),
        }))
    }
}

fn view(found: &ScalingPolicy<'_>) -> v1::ScalingPolicy {
    api_view::scaling_policy(found.id, found.job, found.group)
}
