//! Scaling policies.

use proto::v1;

use super::Style;
use crate::output::fields::Fields;
use crate::output::json::pretty;
use crate::output::table::Table;

pub(crate) fn table(policies: &[v1::ScalingPolicy], style: &Style) -> Table {
    let mut table = Table::new(["ID", "Enabled", "Type", "Target"]);
    for policy in policies {
        table.row([
            style.id(&policy.id),
            policy.enabled.to_string(),
            policy.r#type.clone(),
            target(policy),
        ]);
    }
    table
}

/// One policy, with its settings for an autoscaler.
pub(crate) fn info(policy: &v1::ScalingPolicy, style: &Style) -> String {
    let mut fields = Fields::new();
    fields
        .add("ID", style.id(&policy.id))
        .add("Enabled", policy.enabled.to_string())
        .add("Target", target(policy))
        .add("Min", policy.min.to_string())
        .add("Max", policy.max.to_string());
    let object: serde_json::Value = serde_json::from_str(&policy.policy).unwrap_or_default();
    format!("{}\nPolicy:\n{}", fields.render(), pretty(&object))
}

fn target(policy: &v1::ScalingPolicy) -> String {
    let v1::ScalingPolicy {
        namespace,
        job_id,
        task_group,
        ..
    } = policy;
    format!("Namespace:{namespace},Job:{job_id},Group:{task_group}")
}
