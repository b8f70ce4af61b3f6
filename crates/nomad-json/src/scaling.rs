//! Scaling policies.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ScalingPolicy<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    #[serde(rename = "Type")]
    policy_type: &'a str,
    target: Target<'a>,
    policy: serde_json::Value,
    min: u32,
    max: u32,
    enabled: bool,
    create_index: u64,
    modify_index: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Target<'a> {
    namespace: &'a str,
    job: &'a str,
    group: &'a str,
}

impl<'a> From<&'a v1::ScalingPolicy> for ScalingPolicy<'a> {
    fn from(policy: &'a v1::ScalingPolicy) -> Self {
        Self {
            id: &policy.id,
            policy_type: &policy.r#type,
            target: Target {
                namespace: &policy.namespace,
                job: &policy.job_id,
                group: &policy.task_group,
            },
            policy: serde_json::from_str(&policy.policy).unwrap_or_default(),
            min: policy.min,
            max: policy.max,
            enabled: policy.enabled,
            create_index: policy.create_index,
            modify_index: policy.modify_index,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ScalingEvent<'a> {
    task_group: &'a str,
    /// Nanoseconds since the epoch.
    time: u64,
    /// Null: nothing was changed.
    count: Option<u32>,
    previous_count: u32,
    message: &'a str,
    error: bool,
    meta: BTreeMap<&'a str, &'a str>,
    #[serde(rename = "EvalID")]
    eval_id: &'a str,
    create_index: u64,
}

/// Returns a job's scaling events, the newest first.
pub fn events(status: &v1::GetJobScaleStatusResponse) -> Vec<ScalingEvent<'_>> {
    let events = newest(status).into_iter();
    events
        .map(|(task_group, event)| ScalingEvent {
            task_group,
            time: event.time_ns,
            count: event.count,
            previous_count: event.previous_count,
            message: &event.message,
            error: event.error,
            meta: event
                .meta
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect(),
            eval_id: &event.eval_id,
            create_index: event.create_index,
        })
        .collect()
}

/// Returns the scaling events of all groups, each with its group, the newest first.
fn newest(status: &v1::GetJobScaleStatusResponse) -> Vec<(&str, &v1::ScalingEvent)> {
    let groups: BTreeMap<_, _> = status.task_groups.iter().collect();
    let mut rows = Vec::new();
    for (group, counts) in groups {
        rows.extend(counts.events.iter().map(|event| (group.as_str(), event)));
    }
    rows.sort_by_key(|(_, event)| std::cmp::Reverse(event.time_ns));
    rows
}
