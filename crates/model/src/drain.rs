//! Drains and events of nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{Timestamp, duration_ns};

/// A drain in progress. Its node stays ineligible until a user makes it eligible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainStrategy {
    /// Time after which the remaining allocations are stopped; zero: at once; `None`: no deadline.
    #[serde(with = "duration_ns::option")]
    pub deadline: Option<Duration>,
    /// Allocations of system jobs stay.
    #[serde(default)]
    pub ignore_system_jobs: bool,
    /// The time at which the remaining allocations are stopped; never: no deadline. Stored as a
    /// point in time, so that a new leader continues with the same deadline.
    #[serde(default, skip_serializing_if = "Timestamp::is_never")]
    pub force_deadline: Timestamp,
    pub started_at: Timestamp,
}

impl DrainStrategy {
    /// Creates a drain that starts now.
    pub fn new(deadline: Option<Duration>, ignore_system_jobs: bool, now: Timestamp) -> Self {
        Self {
            deadline,
            ignore_system_jobs,
            force_deadline: deadline.map_or(Timestamp::NEVER, |duration| now.plus(duration)),
            started_at: now,
        }
    }

    /// Tells whether the deadline has passed.
    pub fn is_over(&self, now: Timestamp) -> bool {
        !self.force_deadline.is_never() && self.force_deadline <= now
    }
}

/// The latest drain of a node, in progress or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastDrain {
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub status: DrainStatus,
    /// The operator's notes, such as the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DrainStatus {
    Draining,
    Complete,
    Canceled,
}

impl DrainStatus {
    pub const ALL: [Self; 3] = [Self::Draining, Self::Complete, Self::Canceled];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::Complete => "complete",
            Self::Canceled => "canceled",
        }
    }
}

/// Something that happened to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEvent {
    pub time: Timestamp,
    /// Source of the event, as in `Drain`.
    pub subsystem: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// Number of kept events of a node. Source: Nomad's limit.
pub const NODE_EVENTS_MAX: usize = 10;

/// The subsystem of drains in a node's events. Source: Nomad's.
pub const DRAIN_SUBSYSTEM: &str = "Drain";
