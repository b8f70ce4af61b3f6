//! Deployments.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

use crate::time;
use crate::time::nanoseconds;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Deployment<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    namespace: &'a str,
    #[serde(rename = "JobID")]
    job_id: &'a str,
    job_version: u64,
    job_modify_index: u64,
    job_create_index: u64,
    is_multiregion: bool,
    task_groups: BTreeMap<&'a str, DeploymentState<'a>>,
    status: &'a str,
    status_description: &'a str,
    eval_priority: u32,
    create_index: u64,
    modify_index: u64,
    create_time: u64,
    modify_time: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DeploymentState<'a> {
    auto_revert: bool,
    auto_promote: bool,
    progress_deadline: i64,
    require_progress_by: Option<String>,
    promoted: bool,
    placed_canaries: &'a [String],
    desired_canaries: u32,
    desired_total: u32,
    placed_allocs: u32,
    healthy_allocs: u32,
    unhealthy_allocs: u32,
}

impl<'a> From<&'a v1::Deployment> for Deployment<'a> {
    fn from(deployment: &'a v1::Deployment) -> Self {
        let groups = deployment.task_groups.iter();
        Self {
            id: &deployment.id,
            namespace: &deployment.namespace,
            job_id: &deployment.job_id,
            job_version: deployment.job_version,
            job_modify_index: deployment.job_modify_index,
            job_create_index: deployment.job_create_index,
            is_multiregion: false,
            task_groups: groups
                .map(|(group, state)| (group.as_str(), state.into()))
                .collect(),
            status: &deployment.status,
            status_description: &deployment.status_description,
            eval_priority: deployment.eval_priority,
            create_index: deployment.create_index,
            modify_index: deployment.modify_index,
            create_time: deployment.create_time_ns,
            modify_time: deployment.modify_time_ns,
        }
    }
}

impl<'a> From<&'a v1::DeploymentGroup> for DeploymentState<'a> {
    fn from(group: &'a v1::DeploymentGroup) -> Self {
        Self {
            auto_revert: group.auto_revert,
            auto_promote: group.auto_promote,
            progress_deadline: nanoseconds(group.progress_deadline.as_ref()),
            require_progress_by: time::json(group.require_progress_by_ns),
            promoted: group.promoted,
            placed_canaries: &group.placed_canary_ids,
            desired_canaries: group.desired_canaries,
            desired_total: group.desired_total,
            placed_allocs: group.placed_allocs,
            healthy_allocs: group.healthy_allocs,
            unhealthy_allocs: group.unhealthy_allocs,
        }
    }
}
