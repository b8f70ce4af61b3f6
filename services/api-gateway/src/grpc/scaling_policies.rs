//! `kafila.v1.ScalingPolicies`, derived from the jobs.

use admission::jobs::request_id::scaling_policy_id;
use listing::prefix;
use model::scaling::Scaling;
use model::{Indexed, Job, TaskGroup};
use proto::v1;
use proto::v1::scaling_policies_server::ScalingPolicies;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use uuid::Uuid;

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
            let found = policies(snapshot).filter(|(id, job, _)| {
                list.has_namespace(&job.value.namespace)
                    && (job_id.is_empty() || job.value.id == *job_id)
                    && (wanted.is_empty() || wanted == Scaling::HORIZONTAL)
                    && list.has_id(*id)
            });
            let keyed = found.map(|(id, job, group)| (id.to_string(), (id, job, group)));
            Ok(list.page(keyed, |(id, job, group)| view(id, job, group)))
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
        let find = |snapshot: &Snapshot| {
            let (id, job, group) = find(snapshot, &request.policy_id)?;
            Ok(view(id, job, group))
        };
        let index = |_: &Snapshot, found: &v1::ScalingPolicy| found.modify_index;
        let show = |_: &Snapshot, found: &v1::ScalingPolicy| found.clone();
        let (policy, meta) = Api::get(self, &read, &TABLES, find, index, show).await?;
        Ok(Response::new(v1::GetScalingPolicyResponse {
            meta,
            policy: Some(policy),
        }))
    }
}

type Found<'s> = (Uuid, &'s Indexed<Job>, &'s TaskGroup);

/// Returns every group with a scaling policy, ordered by job.
fn policies(snapshot: &Snapshot) -> impl Iterator<Item = Found<'_>> {
    snapshot.jobs().flat_map(|job| {
        let groups = job.value.task_groups.iter();
        let groups = groups.filter(|group| group.scaling.is_some());
        groups.map(move |group| {
            let id = scaling_policy_id(&job.value.key(), &group.name);
            (id, &**job, group)
        })
    })
}

fn find<'s>(snapshot: &'s Snapshot, text: &str) -> Result<Found<'s>, prefix::NotFound> {
    let all: Vec<Found<'s>> = policies(snapshot).collect();
    let exists = |id| all.iter().any(|(known, ..)| *known == id);
    let ids = all.iter().map(|(id, ..)| (*id, *id));
    let id = prefix::find("policy_id", "scaling policy", text, |id| id, exists, ids)?;
    let found = all.into_iter().find(|(known, ..)| *known == id);
    Ok(found.expect("its id is among them"))
}

fn view(id: Uuid, job: &Indexed<Job>, group: &TaskGroup) -> v1::ScalingPolicy {
    let scaling = group.scaling.as_ref();
    let policy = scaling.map(|scaling| &scaling.policy);
    v1::ScalingPolicy {
        id: id.to_string(),
        r#type: Scaling::HORIZONTAL.to_owned(),
        namespace: job.value.namespace.clone(),
        job_id: job.value.id.clone(),
        task_group: group.name.clone(),
        enabled: scaling.is_some_and(|scaling| scaling.enabled) && !job.value.stop,
        min: scaling.map_or(0, |scaling| scaling.min),
        max: scaling.map_or(0, |scaling| scaling.max),
        policy: policy
            .and_then(|policy| serde_json::to_string(policy).ok())
            .unwrap_or_default(),
        create_index: job.create_index,
        modify_index: job.modify_index,
    }
}
