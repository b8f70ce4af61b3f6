//! Evaluations.

use std::collections::BTreeMap;

use model::{
    AllocMetric, EvalStatus, Evaluation, FieldErrors, Indexed, JobKey, JobType, TriggeredBy,
};

use crate::fields::{At as _, Read, id, id_or_empty, optional_id, priority, time, word};
use crate::{metric, v1};

impl TryFrom<v1::Evaluation> for Evaluation {
    type Error = FieldErrors;

    fn try_from(wire: v1::Evaluation) -> Result<Self, FieldErrors> {
        read(wire).at("evaluation")
    }
}

pub(crate) fn read(wire: v1::Evaluation) -> Read<Evaluation> {
    Ok(Evaluation {
        id: id(&wire.id).at("id")?,
        job: JobKey::new(wire.namespace, wire.job_id),
        job_type: word(&wire.r#type, &JobType::ALL, JobType::as_str).at("type")?,
        priority: priority(wire.priority).at("priority")?,
        triggered_by: word(&wire.triggered_by, &TriggeredBy::ALL, TriggeredBy::as_str)
            .at("triggered_by")?,
        status: word(&wire.status, &EvalStatus::ALL, EvalStatus::as_str).at("status")?,
        status_description: wire.status_description,
        node_id: optional_id(&wire.node_id).at("node_id")?,
        deployment_id: optional_id(&wire.deployment_id).at("deployment_id")?,
        wait_until: time(wire.wait_until_ns),
        next_eval: optional_id(&wire.next_eval_id).at("next_eval_id")?,
        previous_eval: optional_id(&wire.previous_eval_id).at("previous_eval_id")?,
        blocked_eval: optional_id(&wire.blocked_eval_id).at("blocked_eval_id")?,
        failed_task_groups: failed_groups(wire.failed_task_groups).at("failed_task_groups")?,
        queued_allocs: wire.queued_allocations.into_iter().collect(),
        class_eligibility: wire.class_eligibility.into_iter().collect(),
        escaped_computed_class: wire.escaped_computed_class,
        snapshot_index: wire.snapshot_index,
        create_time: time(wire.create_time_ns),
        modify_time: time(wire.modify_time_ns),
        trace_parent: wire.trace_parent,
    })
}

fn failed_groups(
    wire: std::collections::HashMap<String, v1::AllocMetric>,
) -> Read<BTreeMap<String, AllocMetric>> {
    let groups = wire.into_iter().map(|(group, metric)| {
        let metric = metric::read(metric).at(&group)?;
        Ok((group, metric))
    });
    groups.collect()
}

impl From<&Evaluation> for v1::Evaluation {
    fn from(eval: &Evaluation) -> Self {
        Self {
            id: eval.id.to_string(),
            namespace: eval.job.namespace.to_string(),
            job_id: eval.job.job_id.to_string(),
            r#type: eval.job_type.as_str().to_owned(),
            priority: u32::from(eval.priority),
            triggered_by: eval.triggered_by.as_str().to_owned(),
            status: eval.status.as_str().to_owned(),
            status_description: eval.status_description.clone(),
            node_id: id_or_empty(eval.node_id),
            deployment_id: id_or_empty(eval.deployment_id),
            wait_until_ns: eval.wait_until.0,
            next_eval_id: id_or_empty(eval.next_eval),
            previous_eval_id: id_or_empty(eval.previous_eval),
            blocked_eval_id: id_or_empty(eval.blocked_eval),
            failed_task_groups: eval
                .failed_task_groups
                .iter()
                .map(|(group, metric)| (group.clone(), metric.into()))
                .collect(),
            queued_allocations: eval.queued_allocs.clone().into_iter().collect(),
            class_eligibility: eval.class_eligibility.clone().into_iter().collect(),
            escaped_computed_class: eval.escaped_computed_class,
            snapshot_index: eval.snapshot_index,
            create_time_ns: eval.create_time.0,
            modify_time_ns: eval.modify_time.0,
            trace_parent: eval.trace_parent.clone(),
            create_index: 0,
            modify_index: 0,
        }
    }
}

impl From<&Indexed<Evaluation>> for v1::Evaluation {
    fn from(eval: &Indexed<Evaluation>) -> Self {
        Self {
            create_index: eval.create_index,
            modify_index: eval.modify_index,
            ..Self::from(&eval.value)
        }
    }
}
