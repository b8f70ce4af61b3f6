//! Events and effects of the liveness state machine.

use std::time::Duration;

use model::{NodeId, Timestamp};

use crate::config::STORE_SILENCE;
use crate::streams::StreamId;
use crate::transition::Transition;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A gateway has connected.
    Connected { stream: StreamId },
    /// A message of a gateway: it has received heartbeats of these nodes, perhaps of none.
    Heard {
        stream: StreamId,
        nodes: Vec<NodeId>,
    },
    /// A gateway's stream has ended.
    Disconnected { stream: StreamId },
    /// A write that an effect requested has ended, successfully or not.
    Written,
    /// Time has passed.
    Tick,
}

/// The controller's own condition. While it is bad, the time does not count against nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerHealth {
    /// The time since the last message from the store.
    pub store_silent_for: Duration,
    /// The time for which this process certainly leads without another renewal of its lease.
    pub leads_for: Duration,
}

impl ControllerHealth {
    /// Tells whether a decision can be based on the replica and be written.
    pub(super) fn are_good(&self) -> bool {
        self.store_silent_for <= STORE_SILENCE && !self.leads_for.is_zero()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write a node's status, with the evaluations of its jobs.
    Transition(Transition),
    /// Create the missing evaluations for a node that is down: an earlier leader died between writing
    /// the status and the last of them, or the store rejected them.
    Evaluate { node_id: NodeId },
    /// Most nodes stopped sending heartbeats at once; inform the operator.
    MassFailure {
        silent: usize,
        nodes: usize,
        /// No node is marked down before.
        held_until: Timestamp,
    },
    /// No gateway is connected, so missing heartbeats mean nothing; inform the operator.
    Blind,
    /// A gateway has fallen silent or disconnected, and some of its nodes get more time to use another
    /// one; inform the operator.
    GatewayLost { stream: StreamId, nodes: usize },
    /// This process was stalled, which does not count against nodes; inform the operator.
    Stalled { stall: Duration },
}

/// Counts for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Nodes with a running timer.
    pub active: usize,
    pub gateways: usize,
    /// The time that did not count against nodes.
    pub lost: Duration,
}
