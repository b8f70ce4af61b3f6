//! Evaluations.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

use crate::metric::{AllocMetric, counts};
use crate::time;

/// Fields that are empty are left out, as in the HTTP API.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Evaluation<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    namespace: &'a str,
    priority: u32,
    r#type: &'a str,
    triggered_by: &'a str,
    #[serde(rename = "JobID")]
    job_id: &'a str,
    #[serde(rename = "NodeID", skip_serializing_if = "str::is_empty")]
    node_id: &'a str,
    #[serde(rename = "DeploymentID", skip_serializing_if = "str::is_empty")]
    deployment_id: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    status_description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_until: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    next_eval: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    previous_eval: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    blocked_eval: &'a str,
    #[serde(rename = "FailedTGAllocs", skip_serializing_if = "BTreeMap::is_empty")]
    failed_task_groups: BTreeMap<&'a str, AllocMetric<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    class_eligibility: BTreeMap<&'a str, bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    escaped_computed_class: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    queued_allocations: BTreeMap<&'a str, u32>,
    snapshot_index: u64,
    create_index: u64,
    modify_index: u64,
    create_time: u64,
    modify_time: u64,
}

impl<'a> From<&'a v1::Evaluation> for Evaluation<'a> {
    fn from(eval: &'a v1::Evaluation) -> Self {
        let failed = eval.failed_task_groups.iter();
        let classes = eval.class_eligibility.iter();
        Self {
            id: &eval.id,
            namespace: &eval.namespace,
            priority: eval.priority,
            r#type: &eval.r#type,
            triggered_by: &eval.triggered_by,
            job_id: &eval.job_id,
            node_id: &eval.node_id,
            deployment_id: &eval.deployment_id,
            status: &eval.status,
            status_description: &eval.status_description,
            wait_until: time::json(eval.wait_until_ns),
            next_eval: &eval.next_eval_id,
            previous_eval: &eval.previous_eval_id,
            blocked_eval: &eval.blocked_eval_id,
            failed_task_groups: failed
                .map(|(group, why)| (group.as_str(), why.into()))
                .collect(),
            class_eligibility: classes.map(|(class, yes)| (class.as_str(), *yes)).collect(),
            escaped_computed_class: eval.escaped_computed_class,
            queued_allocations: counts(&eval.queued_allocations),
            snapshot_index: eval.snapshot_index,
            create_index: eval.create_index,
            modify_index: eval.modify_index,
            create_time: eval.create_time_ns,
            modify_time: eval.modify_time_ns,
        }
    }
}
