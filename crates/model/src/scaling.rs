//! How many allocations a group may have, and what was done about it.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::ids::EvalId;
use crate::time::Timestamp;

/// Within which counts a group may be scaled, and what an autoscaler goes by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scaling {
    pub enabled: bool,
    pub min: u32,
    /// Not less than `min`.
    pub max: u32,
    /// For an autoscaler alone to understand.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub policy: serde_json::Map<String, serde_json::Value>,
}

/// What was asked of a group's count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalingEvent {
    pub time: Timestamp,
    /// `None`: nothing was changed, somebody had something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    pub previous_count: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whoever scales says that something went wrong.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_id: Option<EvalId>,
    /// The revision that wrote it; 0 for the newest of a group, whose key says so.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub create_index: u64,
}

fn is_zero(index: &u64) -> bool {
    *index == 0
}

/// What was asked of one group lately: the value of `scaling-events/<namespace>/<job>/<group>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalingEvents {
    /// The create index of the job, which tells its incarnations apart.
    #[serde(rename = "jci")]
    pub job_create_index: u64,
    /// Newest first, at most [`Self::MAX_KEPT`].
    pub events: VecDeque<ScalingEvent>,
}

impl ScalingEvents {
    /// How many are kept for a group. Source: Nomad's limit.
    pub const MAX_KEPT: usize = 20;

    /// Puts `event` before the others, the newest of which was written at `index`.
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
        // The key tells when the newest was written, the next write when this one was.
        assert_eq!((kept[0], kept[1], kept[19]), ((25, 0), (24, 124), (6, 106)));
    }
}
