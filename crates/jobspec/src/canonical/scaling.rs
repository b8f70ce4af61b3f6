//! Scaling: the counts of a group, and the resources of a task that an autoscaler chooses.

use std::collections::BTreeSet;

use model::job::JobType;
use model::scaling::{ScaledResource, Scaling, TaskScaling};

use super::validation::{Path, Validation};

pub(super) fn scaling(
    check: &mut Validation,
    path: &Path,
    spec: Option<&job_fields::Scaling>,
    count: u32,
    job_type: JobType,
) -> Option<Scaling> {
    let spec = spec?;
    let block = path.block("scaling");
    if job_type == JobType::System {
        let message = "Task groups with job type system do not support scaling blocks: remove it, \
                       these jobs run once on every node";
        check.error(block, message);
        return None;
    }
    let scaling_type = spec.r#type.as_deref().unwrap_or_default();
    if !matches!(scaling_type, "" | Scaling::HORIZONTAL) {
        let message = format!("Invalid group scaling type {scaling_type:?}: leave it out");
        check.error(block.field("type"), message);
    }
    let Some(max) = spec.max else {
        let message = "missing: scaling needs the largest count, write max = …";
        check.error(block.field("max"), message);
        return None;
    };
    let scaling = Scaling {
        enabled: spec.enabled.unwrap_or(true),
        min: check.number(block.field("min"), spec.min, count),
        max: check.number(block.field("max"), Some(max), count),
        policy: check.object(block.field("policy"), spec.policy.as_ref()),
    };
    if scaling.max < scaling.min {
        let message = format!(
            "maximum count must not be less than minimum count: {} < {}, raise max or lower min",
            scaling.max, scaling.min,
        );
        check.error(block.field("max"), message);
    } else if count < scaling.min {
        let message = format!(
            "task group count must not be less than minimum count in scaling policy: {count} < \
             {}, raise count or lower min",
            scaling.min,
        );
        check.error(path.field("count"), message);
    } else if count > scaling.max {
        let message = format!(
            "task group count must not be greater than maximum count in scaling policy: {count} > \
             {}, lower count or raise max",
            scaling.max,
        );
        check.error(path.field("count"), message);
    }
    Some(scaling)
}

/// Reads the policies of a task; they have no effect but to be shown to autoscalers.
pub(super) fn of_task(
    check: &mut Validation,
    path: &Path,
    specs: &[job_fields::TaskScaling],
) -> Vec<TaskScaling> {
    let mut known = BTreeSet::new();
    let mut policies = Vec::with_capacity(specs.len());
    for (position, spec) in specs.iter().enumerate() {
        let path = path.at("scaling", position);
        let name = spec.r#type.as_deref().unwrap_or_default();
        let resource = ScaledResource::ALL
            .into_iter()
            .find(|one| one.as_str() == name);
        let Some(resource) = resource else {
            let message =
                format!("Invalid task scaling type {name:?}: use vertical_cpu or vertical_mem");
            check.error(path.field("type"), message);
            continue;
        };
        if !known.insert(name) {
            let message =
                format!("there are two scaling blocks of the type {name}: keep one of them");
            check.error(&path, message);
        }
        let policy = TaskScaling {
            resource,
            enabled: spec.enabled.unwrap_or(true),
            min: spec
                .min
                .map(|min| check.number(path.field("min"), Some(min), 0)),
            // An autoscaler may have a limit of its own.
            max: check.number(path.field("max"), spec.max, 0),
            policy: check.object(path.field("policy"), spec.policy.as_ref()),
        };
        if spec.max.is_some() && policy.min.is_some_and(|min| min > policy.max) {
            let message = format!(
                "the largest amount {} is less than the smallest: raise max or lower min",
                policy.max
            );
            check.error(path.field("max"), message);
        }
        policies.push(policy);
    }
    policies
}
