//! Scaling policies of groups.

use model::scaling::Scaling;
use model::{Indexed, Job, TaskGroup};
use proto::v1;

/// Returns the policy of a group; it is disabled while its job is stopped.
pub fn scaling_policy(
    id: impl ToString,
    job: &Indexed<Job>,
    group: &TaskGroup,
) -> v1::ScalingPolicy {
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
