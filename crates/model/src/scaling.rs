//! Scaling: the limits of a group's count and the events that scaled it.

use std::collections::{BTreeMap, VecDeque};

use fnv1a::Fnv128;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{EvalId, JobKey};
use crate::time::Timestamp;

/// The limits of a group's count, and the policy of an autoscaler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scaling {
    pub enabled: bool,
    pub min: u32,
    /// Not less than `min`.
    pub max: u32,
    /// Parameters of an autoscaler.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub policy: serde_json::Map<String, serde_json::Value>,
}

impl Scaling {
    /// The only type: an autoscaler changes the count. Source: Nomad's word for it.
    pub const HORIZONTAL: &str = "horizontal";
}

/// Returns the id of a group's scaling policy: the same on every gateway, and for two versions of it.
pub fn policy_id(job: &JobKey, group: &str) -> Uuid {
    let fields = ["scaling-policy", &job.namespace, &job.job_id, group];
    let hash = fields
        .iter()
        .fold(Fnv128::new(), |hash, field| hash.field(field));
    EvalId::from_random(hash.finish()).0
}

/// The bounds of one resource of a task, for autoscalers; without effect of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskScaling {
    pub resource: ScaledResource,
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    pub max: u32,
    /// Parameters of an autoscaler.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub policy: serde_json::Map<String, serde_json::Value>,
}

/// A resource whose amount an autoscaler chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaledResource {
    VerticalCpu,
    VerticalMem,
}

impl ScaledResource {
    pub const ALL: [Self; 2] = [Self::VerticalCpu, Self::VerticalMem];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::VerticalCpu => "vertical_cpu",
            Self::VerticalMem => "vertical_mem",
        }
    }
}

/// A request to scale a group, or a remark of an autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalingEvent {
    pub time: Timestamp,
    /// `None`: a remark that changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    pub previous_count: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The autoscaler reports an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_id: Option<EvalId>,
    /// The revision that wrote it; 0 for the newest of a group, whose key has it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub create_index: u64,
}

fn is_zero(index: &u64) -> bool {
    *index == 0
}

/// The latest events of one group: the value of `scaling-events/<namespace>/<job>/<group>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalingEvents {
    /// The create index of the job, which identifies its incarnation.
    #[serde(rename = "jci")]
    pub job_create_index: u64,
    /// Newest first, at most [`Self::MAX_KEPT`].
    pub events: VecDeque<ScalingEvent>,
}

impl ScalingEvents {
    /// Number of kept events of a group. Source: Nomad's limit.
    pub const MAX_KEPT: usize = 20;

    /// Adds `event` as the newest; the newest before it was written at `index`.
    pub fn push(&mut self, event: ScalingEvent, index: u64) {
        if let Some(newest) = self.events.front_mut() {
            newest.create_index = index;
        }
        self.events.push_front(event);
        self.events.truncate(Self::MAX_KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_018_twenty_events_are_kept_the_newest_first() {
        let mut events = ScalingEvents::default();
        for number in 1..=25 {
            let event = ScalingEvent {
                count: Some(number),
                ..ScalingEvent::default()
            };
            events.push(event, u64::from(number) + 99);
        }
        let kept: Vec<_> = events
            .events
            .iter()
            .map(|event| (event.count.unwrap(), event.create_index))
            .collect();
        assert_eq!(kept.len(), 20);
        // The key has the index of the newest; the next write stores it.
        assert_eq!((kept[0], kept[1], kept[19]), ((25, 0), (24, 124), (6, 106)));
    }

    #[test]
    fn a_groups_scaling_policy_has_an_id_of_its_own() {
        let id = |job: &str, group: &str| policy_id(&JobKey::new("default", job), group);
        assert_eq!(id("web", "app"), id("web", "app"));
        assert_ne!(id("web", "app"), id("web", "db"));
        assert_ne!(id("web", "app"), id("we", "bapp"));
    }
}
