//! The liveness state machine: a timer for each node, restarted by its heartbeats.

use std::collections::{BTreeMap, BTreeSet};

use model::{Indexed, Node, NodeId, NodeStatus, Timestamp};
use rustc_hash::FxHashMap;
use state::{Change, Entity, Key, Snapshot};

use crate::config::{Config, TIMERS_PER_STEP};
use crate::mass_failure::{MassFailureGuard, Verdict};
use crate::transition::Transition;
use crate::{evals, node_status};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A gateway has received heartbeats of these nodes.
    Heard { nodes: Vec<NodeId> },
    /// The number of connected gateways has changed.
    Gateways { connected: usize },
    /// Time has passed.
    Tick,
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
}

/// Counts for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Nodes with a running timer.
    pub active: usize,
    pub gateways: usize,
}

/// The timers of all nodes for one leadership term.
///
/// **Invariant**: `timers` has exactly one timer for each entry of `nodes`.
#[derive(Debug)]
pub struct Liveness {
    config: Config,
    nodes: FxHashMap<NodeId, Tracked>,
    timers: BTreeSet<(Timestamp, NodeId)>,
    /// Nodes to examine with the next step, because of a heartbeat or a change in the store.
    changed: BTreeSet<NodeId>,
    mass_failure_guard: MassFailureGuard,
    gateways: usize,
    /// Nodes that are down and may lack evaluations, with the time of the next check: the store may
    /// reject the evaluations for longer than the timeout of a write.
    owed: BTreeMap<NodeId, Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    /// How long it counts as alive without another heartbeat.
    alive_until: Timestamp,
    /// Whether this leader has received a heartbeat; if not, it only assumes that the node is alive.
    heard: bool,
    /// The time of the next check: the end of `alive_until`, or of a delay after it.
    timer: Timestamp,
    /// The modify index that a transition was last requested for, and the time to request it again.
    asked: Option<(u64, Timestamp)>,
}

impl Liveness {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            nodes: FxHashMap::default(),
            timers: BTreeSet::new(),
            changed: BTreeSet::new(),
            mass_failure_guard: MassFailureGuard::default(),
            gateways: 0,
            owed: BTreeMap::new(),
        }
    }

    /// Starts a timer for every node that has none and is not down: after an election, and whenever
    /// the change feed was interrupted.
    ///
    /// Returns an effect for each node that is down and lacks evaluations.
    pub fn resync(&mut self, now: Timestamp, snapshot: &Snapshot) -> Vec<Effect> {
        let gone: Vec<NodeId> = self
            .nodes
            .keys()
            .filter(|id| snapshot.node(**id).is_none())
            .copied()
            .collect();
        for id in gone {
            self.forget(id);
        }
        let mut effects = Vec::new();
        for node in snapshot.nodes() {
            let id = node.value.id;
            if is_down(&node.value) {
                self.owed.insert(id, now);
                self.look_at_owed(now, id, snapshot, &mut effects);
            } else if !self.nodes.contains_key(&id) {
                self.believe(id, self.after_takeover(now));
            }
            self.changed.insert(id);
        }
        effects
    }

    /// Records the changes of one revision.
    pub fn note(&mut self, now: Timestamp, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Put {
                    key: Key::Node(id),
                    entity,
                    ..
                } => {
                    self.changed.insert(*id);
                    // Users write to nodes that are down as well. Only a heartbeat shows that a
                    // node is alive.
                    let is_down = matches!(entity, Entity::Node(node) if is_down(node));
                    if !is_down && !self.nodes.contains_key(id) {
                        // New, so it has just registered: assume that it is alive.
                        self.believe(*id, now.plus(self.config.silence_limit()));
                    }
                }
                Change::Delete { key: Key::Node(id) } => self.forget(*id),
                _ => {}
            }
        }
    }

    /// Records one event and returns its consequences for the nodes in `snapshot`.
    pub fn step(&mut self, now: Timestamp, event: Event, snapshot: &Snapshot) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Heard { nodes } => {
                for id in nodes {
                    self.hear(id, now.plus(self.config.silence_limit()));
                }
            }
            Event::Gateways { connected } => {
                self.count_gateways(now, connected, snapshot, &mut effects);
            }
            Event::Tick => {}
        }
        for id in std::mem::take(&mut self.changed) {
            self.look_at_living(now, id, snapshot, &mut effects);
        }
        if self.gateways > 0 {
            self.fire_timers(now, snapshot, &mut effects);
        }
        let owed = self.owed.iter().filter(|(_, at)| **at <= now);
        let owed: Vec<NodeId> = owed.map(|(id, _)| *id).take(TIMERS_PER_STEP).collect();
        for id in owed {
            self.look_at_owed(now, id, snapshot, &mut effects);
        }
        effects
    }

    /// Requests the evaluations of a node that is down again, if some are missing.
    fn look_at_owed(
        &mut self,
        now: Timestamp,
        id: NodeId,
        snapshot: &Snapshot,
        effects: &mut Vec<Effect>,
    ) {
        let node = snapshot.node(id).filter(|node| is_down(&node.value));
        if node.is_some_and(|node| evals::is_owed(snapshot, node, now)) {
            effects.push(Effect::Evaluate { node_id: id });
            self.owed.insert(id, now.plus(self.config.write_retry));
        } else {
            self.owed.remove(&id);
        }
    }

    /// Returns the time of the next [`Event::Tick`]; `None`: only another event requires a step.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let timer = timer.filter(|_| self.gateways > 0);
        let owed = self.owed.values().min().copied();
        timer.into_iter().chain(owed).min()
    }

    pub fn stats(&self) -> Stats {
        Stats {
            active: self.timers.len(),
            gateways: self.gateways,
        }
    }

    fn after_takeover(&self, now: Timestamp) -> Timestamp {
        now.plus(self.config.takeover_grace + self.config.silence_limit())
    }

    /// Without any gateway, missing heartbeats mean nothing. When the first one reconnects, every node
    /// that is not down gets the time for another heartbeat.
    fn count_gateways(
        &mut self,
        now: Timestamp,
        connected: usize,
        snapshot: &Snapshot,
        effects: &mut Vec<Effect>,
    ) {
        if self.gateways > 0 && connected == 0 {
            effects.push(Effect::Blind);
        }
        if self.gateways == 0 && connected > 0 {
            let until = self.after_takeover(now);
            let lives = |id: &NodeId| snapshot.node(*id).is_none_or(|node| !is_down(&node.value));
            let nodes: Vec<NodeId> = self.nodes.keys().copied().filter(lives).collect();
            for id in nodes {
                self.believe(id, until);
            }
        }
        self.gateways = connected;
    }

    fn look_at_living(
        &mut self,
        now: Timestamp,
        id: NodeId,
        snapshot: &Snapshot,
        effects: &mut Vec<Effect>,
    ) {
        let lives = self
            .nodes
            .get(&id)
            .is_some_and(|tracked| tracked.heard && tracked.alive_until > now);
        let Some(node) = snapshot.node(id).filter(|_| lives) else {
            return;
        };
        if let Some(to) = node_status::when_heard(&self.config, now, snapshot, node) {
            self.ask(now, node, to, effects);
        }
    }

    fn fire_timers(&mut self, now: Timestamp, snapshot: &Snapshot, effects: &mut Vec<Effect>) {
        // The nil id is the smallest, so the range has every timer up to now.
        let end = (Timestamp(now.0.saturating_add(1)), NodeId::default());
        let due: Vec<NodeId> = self
            .timers
            .range(..end)
            .take(TIMERS_PER_STEP)
            .map(|(_, id)| *id)
            .collect();
        if due.is_empty() {
            return;
        }
        let (silent, nodes) = self.silent(now);
        match self
            .mass_failure_guard
            .rule(now, silent, nodes, self.config.heartbeat_ttl)
        {
            Verdict::Proceed => {
                for id in due {
                    self.expire(now, id, snapshot, effects);
                }
            }
            Verdict::StartHold { until } => {
                effects.push(Effect::MassFailure {
                    silent,
                    nodes,
                    held_until: until,
                });
                self.look_later(&due, until);
            }
            Verdict::KeepHold { until } => self.look_later(&due, until),
        }
    }

    /// Returns how many nodes have missed a heartbeat within the last two TTLs, and how many nodes there
    /// are without those that missed it earlier.
    fn silent(&self, now: Timestamp) -> (usize, usize) {
        let late_by = now.plus(self.config.heartbeat_grace);
        let (mut silent, mut nodes) = (0, 0);
        for tracked in self.nodes.values() {
            if now.since(tracked.alive_until) > self.config.heartbeat_ttl * 2 {
                continue;
            }
            nodes += 1;
            silent += usize::from(tracked.alive_until <= late_by);
        }
        (silent, nodes)
    }

    /// Handles the expired timer of a node.
    fn expire(
        &mut self,
        now: Timestamp,
        id: NodeId,
        snapshot: &Snapshot,
        effects: &mut Vec<Effect>,
    ) {
        let node = snapshot.node(id).filter(|node| !is_down(&node.value));
        let Some(node) = node else {
            // Deleted, or down already: it needs no timer until its next heartbeat. Its status may
            // have been written without all of its evaluations.
            self.forget(id);
            self.look_at_owed(now, id, snapshot, effects);
            return;
        };
        if let Some(to) = node_status::when_silent(now, snapshot, node) {
            self.ask(now, node, to, effects);
        }
        // Check again once the store should show it, or (disconnected) after another TTL.
        let again = self.config.write_retry.max(self.config.heartbeat_ttl);
        self.look_later(&[id], now.plus(again));
    }

    /// Requests a transition, unless the same was requested a moment ago.
    fn ask(
        &mut self,
        now: Timestamp,
        node: &Indexed<Node>,
        to: NodeStatus,
        effects: &mut Vec<Effect>,
    ) {
        let Some(tracked) = self.nodes.get_mut(&node.value.id) else {
            return;
        };
        if tracked
            .asked
            .is_some_and(|(index, again)| index == node.modify_index && now < again)
        {
            return;
        }
        tracked.asked = Some((node.modify_index, now.plus(self.config.write_retry)));
        effects.push(Effect::Transition(Transition {
            node_id: node.value.id,
            from: node.value.status,
            to,
            modify_index: node.modify_index,
        }));
    }

    /// Records a heartbeat.
    fn hear(&mut self, id: NodeId, alive_until: Timestamp) {
        self.set(id, alive_until, true);
        self.changed.insert(id);
    }

    /// Assumes that a node is alive until then, without a heartbeat.
    fn believe(&mut self, id: NodeId, alive_until: Timestamp) {
        self.set(id, alive_until, false);
    }

    fn set(&mut self, id: NodeId, alive_until: Timestamp, heard: bool) {
        let old = self.nodes.get(&id).copied();
        if let Some(old) = old {
            self.timers.remove(&(old.timer, id));
        }
        self.timers.insert((alive_until, id));
        let asked = old.and_then(|old| old.asked);
        self.nodes.insert(
            id,
            Tracked {
                alive_until,
                heard,
                timer: alive_until,
                asked,
            },
        );
    }

    fn look_later(&mut self, ids: &[NodeId], at: Timestamp) {
        for id in ids {
            if let Some(tracked) = self.nodes.get_mut(id) {
                self.timers.remove(&(tracked.timer, *id));
                tracked.timer = at;
                self.timers.insert((at, *id));
            }
        }
    }

    fn forget(&mut self, id: NodeId) {
        if let Some(tracked) = self.nodes.remove(&id) {
            self.timers.remove(&(tracked.timer, id));
        }
    }
}

fn is_down(node: &Node) -> bool {
    node.status == NodeStatus::Down
}
