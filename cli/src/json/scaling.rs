//! Scaling policies.

use proto::v1;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ScalingPolicy<'a> {
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
                group: &policy.group,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn what_an_autoscaler_goes_by_is_an_object_again() {
        let policy = fixtures::scaling_policy();
        let shown = serde_json::to_value(ScalingPolicy::from(&policy)).unwrap();
        assert_eq!(shown["Policy"]["cooldown"], "1m");
        assert_eq!(shown["Target"]["Job"], "web");
        let none = v1::ScalingPolicy::default();
        let shown = serde_json::to_value(ScalingPolicy::from(&none)).unwrap();
        assert!(shown["Policy"].is_null());
    }
}
