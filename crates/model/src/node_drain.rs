//! Start and end of a node's drain, and the events that a node keeps.

use std::collections::BTreeMap;

use crate::drain::{
    DRAIN_SUBSYSTEM, DrainStatus, DrainStrategy, LastDrain, NODE_EVENTS_MAX, NodeEvent,
};
use crate::node::{Node, NodeEligibility};
use crate::time::Timestamp;

impl Node {
    /// Adds an event, and drops the oldest beyond [`NODE_EVENTS_MAX`].
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

    /// Starts a drain, or changes the one in progress, which keeps its start.
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

    /// Ends the drain in progress, if there is one; the node stays ineligible.
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
