//! Within which counts a group may be scaled.

use model::Scaling;
use model::job::JobType;

use super::check::{Check, Path};

pub(super) fn scaling(
    check: &mut Check,
    path: &Path,
    spec: Option<&spec::Scaling>,
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
    if !matches!(scaling_type, "" | "horizontal") {
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
