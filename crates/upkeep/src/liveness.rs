//! The machine: a timer per node, and what heartbeats and silence make of it.

use std::collections::{BTreeMap, BTreeSet};

use model::{Indexed, Node, NodeId, NodeStatus, Timestamp};
use rustc_hash::FxHashMap;
use state::{Change, Entity, Key, Snapshot};

use crate::config::{Config, TIMERS_PER_STEP};
use crate::damper::{Damper, Ruling};
use crate::{evals, judge};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A gateway has heard of these nodes.
    Heard { nodes: Vec<NodeId> },
    /// So many gateways report now.
    Gateways { connected: usize },
    /// Time has passed.
    Tick,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write a node's status, with the evaluations that follow from it.
    Transition(Transition),
    /// Write evaluations of the jobs of a node that is down: an earlier leader may have died
    /// between the status and the last of them, or the store may have refused them.
    Evaluate { node_id: NodeId },
    /// More nodes are silent than can be believed; tell the operator.
    MassFailure {
        silent: usize,
        nodes: usize,
        /// Nothing is done about it before.
        held_until: Timestamp,
    },
    /// No gateway reports, so silence says nothing; tell the operator.
    Blind,
}

/// One change of a node's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub node_id: NodeId,
    pub from: NodeStatus,
    pub to: NodeStatus,
    /// The node key's mod revision that it was decided on.
    pub modify_index: u64,
}

/// How many nodes are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Nodes with a running timer.
    pub active: usize,
    pub gateways: usize,
}

/// Keeps nodes' timers for the length of one leadership.
///
/// **Invariant**: a timer stands in `timers` exactly for each entry of `nodes`.
#[derive(Debug)]
pub struct Liveness {
    config: Config,
    nodes: FxHashMap<NodeId, Tracked>,
    timers: BTreeSet<(Timestamp, NodeId)>,
    /// Nodes to look at with the next step, because they were heard of or the store has changed
    /// them.
    changed: BTreeSet<NodeId>,
    damper: Damper,
    gateways: usize,
    /// Nodes that are down of which it is to be seen that their jobs were told, and when to look:
    /// a write of evaluations may be refused for longer than its own patience.
    owed: BTreeMap<NodeId, Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    /// Until when it counts as alive without being heard of again.
    alive_until: Timestamp,
    /// Heard of during this leadership; else it is only believed to live.
    heard: bool,
    /// When to look again: when its life is over, or what follows from that is.
    timer: Timestamp,
    /// The mod revision that a transition was last asked for, and when to ask again.
    asked: Option<(u64, Timestamp)>,
}

impl Liveness {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            nodes: FxHashMap::default(),
            timers: BTreeSet::new(),
            changed: BTreeSet::new(),
            damper: Damper::default(),
            gateways: 0,
            owed: BTreeMap::new(),
        }
    }

    /// Starts a timer for every node that has none and is not down: after an election, and
    /// whenever the change feed has been lost.
    ///
    /// Returns the nodes that are down and have allocations which nobody was told to look at.
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

    /// Notes the changes of one revision.
    pub fn note(&mut self, now: Timestamp, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Put {
                    key: Key::Node(id),
                    entity,
                    ..
                } => {
                    self.changed.insert(*id);
                    // Users write to nodes that are down as well, which says nothing of whether
                    // they live: only a heartbeat does.
                    let is_down = matches!(entity, Entity::Node(node) if is_down(node));
                    if !is_down && !self.nodes.contains_key(id) {
                        // New here: believed to live, as it has just registered.
                        self.believe(*id, now.plus(self.config.silence_limit()));
                    }
                }
                Change::Delete { key: Key::Node(id) } => self.forget(*id),
                _ => {}
            }
        }
    }

    /// Records one event and returns what follows for the nodes as `snapshot` has them.
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

    /// Asks for the evaluations of a node that is down once more, if its jobs have not been told.
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

    /// When to step with [`Event::Tick`]; `None`: not before something happens.
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

    /// Without any gateway silence means nothing; with the first that returns, every node that is
    /// not known to be down gets the time to be heard of again.
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
        if let Some(to) = judge::when_heard(&self.config, now, snapshot, node) {
            self.ask(now, node, to, effects);
        }
    }

    fn fire_timers(&mut self, now: Timestamp, snapshot: &Snapshot, effects: &mut Vec<Effect>) {
        // Of equal times the nil id is the first, so this is every timer up to now.
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
            .damper
            .rule(now, silent, nodes, self.config.heartbeat_ttl)
        {
            Ruling::LetGo => {
                for id in due {
                    self.expire(now, id, snapshot, effects);
                }
            }
            Ruling::Hold { until } => {
                effects.push(Effect::MassFailure {
                    silent,
                    nodes,
                    held_until: until,
                });
                self.look_later(&due, until);
            }
            Ruling::Holding { until } => self.look_later(&due, until),
        }
    }

    /// Returns how many nodes have fallen silent for longer than they promised within the last two
    /// TTLs, and how many there are beside those that have been silent for longer.
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

    /// Draws the consequence of a node's silence.
    fn expire(
        &mut self,
        now: Timestamp,
        id: NodeId,
        snapshot: &Snapshot,
        effects: &mut Vec<Effect>,
    ) {
        let node = snapshot.node(id).filter(|node| !is_down(&node.value));
        let Some(node) = node else {
            // Gone, or known to be down: nothing is timed until it is heard of. Its status may have
            // been written without all of its evaluations.
            self.forget(id);
            self.look_at_owed(now, id, snapshot, effects);
            return;
        };
        if let Some(to) = judge::when_silent(now, snapshot, node) {
            self.ask(now, node, to, effects);
        }
        // Until the store shows it, or (disconnected) to look again after another TTL.
        let again = self.config.write_retry.max(self.config.heartbeat_ttl);
        self.look_later(&[id], now.plus(again));
    }

    /// Asks for a transition, unless the same was asked for a moment ago.
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

    /// Notes that a node was heard of.
    fn hear(&mut self, id: NodeId, alive_until: Timestamp) {
        self.set(id, alive_until, true);
        self.changed.insert(id);
    }

    /// Takes a node for alive until then, though it has not been heard of.
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
