//! A node's drain: what was asked for, and how the last one went; and what else happened to a node.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::node::{Node, NodeEligibility};
use crate::time::{Timestamp, duration_ns};

/// A drain under way. Who it is for is ineligible until somebody says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainStrategy {
    /// How long allocations may take to leave by themselves; zero: not at all; `None`: as long as
    /// they need.
    #[serde(with = "duration_ns::option")]
    pub deadline: Option<Duration>,
    /// Allocations of system jobs stay.
    #[serde(default)]
    pub ignore_system_jobs: bool,
    /// When everything that is left has to go; never: there is no deadline. Stored as a point in
    /// time, so that a new leader goes on where the last one was.
    #[serde(default, skip_serializing_if = "Timestamp::is_never")]
    pub force_deadline: Timestamp,
    pub started_at: Timestamp,
}

impl DrainStrategy {
    /// Makes a drain that begins now.
    pub fn new(deadline: Option<Duration>, ignore_system_jobs: bool, now: Timestamp) -> Self {
        Self {
            deadline,
            ignore_system_jobs,
            force_deadline: deadline.map_or(Timestamp::NEVER, |span| now.plus(span)),
            started_at: now,
        }
    }

    /// Tells whether everything that is left has to go now.
    pub fn is_over(&self, now: Timestamp) -> bool {
        !self.force_deadline.is_never() && self.force_deadline <= now
    }
}

/// The newest drain of a node, under way or over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastDrain {
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub status: DrainStatus,
    /// The operator's words, such as why.
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
    /// What part of the system tells, as in `Drain`.
    pub subsystem: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// How many events a node keeps. Source: Nomad's bound.
pub const NODE_EVENTS_MAX: usize = 10;

/// The word for drains in a node's events. Source: Nomad's.
pub const DRAIN_SUBSYSTEM: &str = "Drain";

impl Node {
    /// Adds an event, and forgets the oldest beyond [`NODE_EVENTS_MAX`].
    pub fn note(&mut self, time: Timestamp, subsystem: &str, message: &str) -> &mut NodeEvent {
        let surplus = (self.events.len() + 1).saturating_sub(NODE_EVENTS_MAX);
        self.events.drain(..surplus);
        self.events.push(NodeEvent {
            time,
            subsystem: subsystem.to_owned(),
            message: message.to_owned(),
            details: BTreeMap::new(),
        });
        self.events.last_mut().expect("one was just added")
    }

    /// Begins a drain, or changes the one under way, which keeps its start.
    pub fn begin_drain(
        &mut self,
        mut strategy: DrainStrategy,
        meta: BTreeMap<String, String>,
        now: Timestamp,
    ) {
        let message = match &self.drain {
            Some(running) => {
                strategy.started_at = running.started_at;
                "Node drain strategy updated"
            }
            None => "Node drain strategy set",
        };
        self.eligibility = NodeEligibility::Ineligible;
        self.last_drain = Some(LastDrain {
            started_at: strategy.started_at,
            updated_at: now,
            status: DrainStatus::Draining,
            meta,
        });
        self.drain = Some(strategy);
        self.note(now, DRAIN_SUBSYSTEM, message);
    }

    /// Ends the drain under way, if there is one; it stays ineligible.
    pub fn end_drain(&mut self, status: DrainStatus, now: Timestamp) {
        let Some(strategy) = self.drain.take() else {
            return;
        };
        let meta = self.last_drain.take().map(|last| last.meta);
        self.last_drain = Some(LastDrain {
            started_at: strategy.started_at,
            updated_at: now,
            status,
            meta: meta.unwrap_or_default(),
        });
        let message = match status {
            DrainStatus::Complete => "Node drain complete",
            DrainStatus::Draining | DrainStatus::Canceled => "Node drain canceled",
        };
        let event = self.note(now, DRAIN_SUBSYSTEM, message);
        if status == DrainStatus::Complete && strategy.is_over(now) {
            let reached = ("deadline_reached".to_owned(), "true".to_owned());
            event.details.extend([reached]);
        }
    }
}
