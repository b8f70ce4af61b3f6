//! The liveness state machine: a timer for each node, restarted by its heartbeats.

use std::collections::{BTreeMap, BTreeSet};

use model::{Indexed, Node, NodeId, NodeStatus, Timestamp};
use rustc_hash::FxHashMap;
use state::{Change, Entity, Key, Snapshot};

use crate::config::{Config, TIMERS_PER_STEP};
use crate::mass_failure::{MassFailureGuard, Verdict};
use crate::pace::Pace;
use crate::stall_adjusted_clock::StallAdjustedClock;
use crate::streams::{StreamId, Streams};
use crate::transition::Transition;
use crate::{evals, node_status};

mod event;

pub use event::{ControllerHealth, Effect, Event, Stats};

/// The timers of all nodes for one leadership term.
///
/// **Invariant**: `timers` has exactly one timer for each entry of `nodes`.
#[derive(Debug)]
pub struct Liveness {
    config: Config,
    /// The clock of all deadlines of nodes.
    clock: StallAdjustedClock,
    nodes: FxHashMap<NodeId, Tracked>,
    /// By the time of `clock`.
    timers: BTreeSet<(Timestamp, NodeId)>,
    /// Nodes to examine with the next step, because of a heartbeat or a change in the store.
    changed: BTreeSet<NodeId>,
    /// Nodes that are down, send heartbeats and wait for their turn.
    returning: BTreeSet<NodeId>,
    mass_failure_guard: MassFailureGuard,
    streams: Streams,
    pace: Pace,
    /// Nodes that are down and may lack evaluations, with the time of the next check: the store may
    /// reject the evaluations for longer than the timeout of a write.
    unevaluated: BTreeMap<NodeId, Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    /// The time until which the node counts as alive without another heartbeat, by the
    /// [`StallAdjustedClock`].
    alive_until: Timestamp,
    /// The stream of the last heartbeat.
    stream: Option<StreamId>,
    /// True once the node was given time because of the loss of that stream, which happens once.
    is_extended: bool,
    /// True once this leader has received a heartbeat; until then it assumes that the node is
    /// alive.
    heard: bool,
    /// The time of the next check: the end of `alive_until`, or of a delay after it.
    timer: Timestamp,
    /// The modify index that a transition was last requested for, and the time to request it again.
    requested: Option<(u64, Timestamp)>,
}

impl Liveness {
    pub fn new(config: Config) -> Self {
        let ttl = config.heartbeat_ttl;
        Self {
            config,
            clock: StallAdjustedClock::new(ttl),
            nodes: FxHashMap::default(),
            timers: BTreeSet::new(),
            changed: BTreeSet::new(),
            returning: BTreeSet::new(),
            mass_failure_guard: MassFailureGuard::default(),
            streams: Streams::new(ttl),
            pace: Pace::default(),
            unevaluated: BTreeMap::new(),
        }
    }

    /// Starts a timer for every node that has none and is not down: after an election, and whenever
    /// the change feed was interrupted.
    ///
    /// Returns an effect for each node that lacks evaluations.
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
            if is_down(&node.value) || node.value.lacks_evals {
                self.unevaluated.insert(id, now);
                self.check_unevaluated(now, id, snapshot, &mut effects);
            }
            if !is_down(&node.value) && !self.nodes.contains_key(&id) {
                self.assume_alive(id, self.after_takeover(self.clock.counted(now)));
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
                    if matches!(entity, Entity::Node(node) if node.lacks_evals) {
                        self.unevaluated.insert(*id, now);
                    }
                    if !is_down && !self.nodes.contains_key(id) {
                        // New, so it has just registered: assume that it is alive.
                        let counted = self.clock.counted(now);
                        self.assume_alive(*id, counted.plus(self.config.silence_limit()));
                    }
                }
                Change::Delete { key: Key::Node(id) } => self.forget(*id),
                _ => {}
            }
        }
    }

    /// Records events and returns their consequences for the nodes in `snapshot`.
    ///
    /// Each [`Effect::Transition`] and [`Effect::Evaluate`] is one write, whose end the caller reports
    /// as [`Event::Written`].
    pub fn step(
        &mut self,
        now: Timestamp,
        controller_health: ControllerHealth,
        events: Vec<Event>,
        snapshot: &Snapshot,
    ) -> Vec<Effect> {
        let mut effects = Vec::new();
        let has_gateways = self.streams.count() > 0;
        if has_gateways {
            let speaks = self.streams.has_live_stream(self.clock.counted(now));
            let time_counts = controller_health.are_good() && speaks;
            if let Some(stall) = self.clock.advance(now, time_counts) {
                effects.push(Effect::Stalled { stall });
            }
        } else {
            // The timers rest, and start anew with the first gateway.
            self.clock.skip(now);
        }
        let counted = self.clock.counted(now);
        for event in events {
            self.record(counted, event, snapshot, &mut effects);
        }
        if has_gateways && self.streams.count() == 0 {
            effects.push(Effect::Blind);
        }
        for stream in self.streams.newly_silent(counted) {
            self.extend_timers(counted, stream, &mut effects);
        }
        self.check_changed(now, snapshot, &mut effects);
        if self.streams.count() > 0 && !self.clock.is_frozen() {
            self.fire_timers(now, snapshot, &mut effects);
        }
        let unevaluated = self.unevaluated.iter().filter(|(_, at)| **at <= now);
        let unevaluated: Vec<NodeId> = unevaluated
            .map(|(id, _)| *id)
            .take(TIMERS_PER_STEP)
            .collect();
        for id in unevaluated {
            self.check_unevaluated(now, id, snapshot, &mut effects);
        }
        effects
    }

    fn record(
        &mut self,
        counted: Timestamp,
        event: Event,
        snapshot: &Snapshot,
        effects: &mut Vec<Effect>,
    ) {
        match event {
            Event::Connected { stream } => {
                if self.streams.count() == 0 {
                    self.assume_all_alive(counted, snapshot);
                }
                self.streams.open(stream, counted);
            }
            Event::Heard { stream, nodes } => {
                self.streams.record_message(stream, counted);
                for id in nodes {
                    self.record_heartbeat(id, stream, counted.plus(self.config.silence_limit()));
                }
            }
            Event::Disconnected { stream } => {
                if self.streams.close(stream) {
                    self.extend_timers(counted, stream, effects);
                }
            }
            Event::Written => self.pace.end(),
            Event::Tick => {}
        }
    }

    /// Gives the nodes of a lost stream the time to send a heartbeat to another gateway.
    fn extend_timers(&mut self, counted: Timestamp, stream: StreamId, effects: &mut Vec<Effect>) {
        let until = counted.plus(self.config.heartbeat_ttl);
        let mut extended = Vec::new();
        for (id, tracked) in &mut self.nodes {
            let is_alive = tracked.alive_until > counted;
            if tracked.stream == Some(stream) && is_alive && !tracked.is_extended {
                tracked.is_extended = true;
                if tracked.alive_until < until {
                    tracked.alive_until = until;
                    extended.push(*id);
                }
            }
        }
        self.schedule_checks(&extended, until);
        let nodes = extended.len();
        if nodes > 0 {
            effects.push(Effect::GatewayLost { stream, nodes });
        }
    }

    /// Examines the nodes that were heard of or have changed, at the pace of the store.
    fn check_changed(&mut self, now: Timestamp, snapshot: &Snapshot, effects: &mut Vec<Effect>) {
        while self.pace.has_room() {
            let Some(id) = self.changed.pop_first() else {
                break;
            };
            self.check_live_node(now, id, snapshot, effects);
        }
        while self.pace.has_room() && self.pace.may_return_at() <= now {
            let Some(id) = self.returning.pop_first() else {
                break;
            };
            self.check_live_node(now, id, snapshot, effects);
        }
    }

    /// Requests the evaluations of a node, if some are missing.
    fn check_unevaluated(
        &mut self,
        now: Timestamp,
        id: NodeId,
        snapshot: &Snapshot,
        effects: &mut Vec<Effect>,
    ) {
        let node = snapshot.node(id);
        if node.is_some_and(|node| evals::may_lack_one(snapshot, node, now)) {
            if !self.pace.has_room() {
                self.unevaluated.insert(id, now);
                return;
            }
            self.pace.begin();
            effects.push(Effect::Evaluate { node_id: id });
            self.unevaluated
                .insert(id, now.plus(self.config.write_retry));
        } else {
            self.unevaluated.remove(&id);
        }
    }

    /// Returns the time of the next [`Event::Tick`]; `None`: only another event requires a step.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let is_watching = self.streams.count() > 0 && !self.nodes.is_empty();
        let tick = self.clock.next_tick().filter(|_| is_watching);
        if !self.pace.has_room() {
            // The end of a write requires a step.
            return tick;
        }
        let timer = self.timers.first().filter(|_| self.streams.count() > 0);
        let timer = timer.and_then(|(at, _)| self.clock.when(*at));
        let unevaluated = self.unevaluated.values().min().copied();
        let turn = (!self.returning.is_empty()).then(|| self.pace.may_return_at());
        [tick, timer, unevaluated, turn].into_iter().flatten().min()
    }

    pub fn stats(&self) -> Stats {
        Stats {
            active: self.timers.len(),
            gateways: self.streams.count(),
            lost: self.clock.lost(),
        }
    }

    fn after_takeover(&self, counted: Timestamp) -> Timestamp {
        counted.plus(self.config.takeover_grace + self.config.silence_limit())
    }

    /// Without any gateway, missing heartbeats mean nothing. When the first one connects, every node
    /// that is not down gets the time for another heartbeat.
    fn assume_all_alive(&mut self, counted: Timestamp, snapshot: &Snapshot) {
        let until = self.after_takeover(counted);
        let lives = |id: &NodeId| snapshot.node(*id).is_none_or(|node| !is_down(&node.value));
        let nodes: Vec<NodeId> = self.nodes.keys().copied().filter(lives).collect();
        for id in nodes {
            self.assume_alive(id, until);
        }
    }

    fn check_live_node(
        &mut self,
        now: Timestamp,
        id: NodeId,
        snapshot: &Snapshot,
        effects: &mut Vec<Effect>,
    ) {
        let counted = self.clock.counted(now);
        let lives = self
            .nodes
            .get(&id)
            .is_some_and(|tracked| tracked.heard && tracked.alive_until > counted);
        let Some(node) = snapshot.node(id).filter(|_| lives) else {
            return;
        };
        if let Some(to) = node_status::status_after_heartbeat(&self.config, now, snapshot, node) {
            if is_down(&node.value) && !self.is_requested(now, node) && !self.pace.take_return(now)
            {
                self.returning.insert(id);
                return;
            }
            self.request(now, node, to, effects);
        }
    }

    fn fire_timers(&mut self, now: Timestamp, snapshot: &Snapshot, effects: &mut Vec<Effect>) {
        let counted = self.clock.counted(now);
        // The nil id is the smallest, so the range has every timer up to now.
        let end = (Timestamp(counted.0.saturating_add(1)), NodeId::default());
        let due: Vec<NodeId> = self
            .timers
            .range(..end)
            .take(TIMERS_PER_STEP)
            .map(|(_, id)| *id)
            .collect();
        if due.is_empty() {
            return;
        }
        let (silent, nodes) = self.silent(counted);
        match self
            .mass_failure_guard
            .rule(counted, silent, nodes, self.config.heartbeat_ttl)
        {
            Verdict::Proceed => {
                for id in due {
                    // The others stay due, and may be heard of before their turn.
                    if !self.pace.has_room() {
                        break;
                    }
                    self.expire(now, id, snapshot, effects);
                }
            }
            Verdict::StartHold { until } => {
                effects.push(Effect::MassFailure {
                    silent,
                    nodes,
                    held_until: until.plus(self.clock.lost()),
                });
                self.schedule_checks(&due, until);
            }
            Verdict::KeepHold { until } => self.schedule_checks(&due, until),
        }
    }

    /// Returns how many nodes have missed a heartbeat within the last two TTLs, and how many nodes there
    /// are without those that missed it earlier.
    fn silent(&self, counted: Timestamp) -> (usize, usize) {
        let late_by = counted.plus(self.config.heartbeat_grace);
        let (mut silent, mut nodes) = (0, 0);
        for tracked in self.nodes.values() {
            if counted.since(tracked.alive_until) > self.config.heartbeat_ttl * 2 {
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
            self.check_unevaluated(now, id, snapshot, effects);
            return;
        };
        if let Some(to) = node_status::status_after_timeout(now, snapshot, node) {
            self.request(now, node, to, effects);
        }
        // Check again once the store should show it, or (disconnected) after another TTL.
        let again = self.config.write_retry.max(self.config.heartbeat_ttl);
        self.schedule_checks(&[id], self.clock.counted(now).plus(again));
    }

    /// Tells whether a transition of the node as it is now was requested a moment ago.
    fn is_requested(&self, now: Timestamp, node: &Indexed<Node>) -> bool {
        let tracked = self.nodes.get(&node.value.id);
        let requested = tracked.and_then(|tracked| tracked.requested);
        requested.is_some_and(|(index, again)| index == node.modify_index && now < again)
    }

    /// Requests a transition, unless the same was requested a moment ago.
    fn request(
        &mut self,
        now: Timestamp,
        node: &Indexed<Node>,
        to: NodeStatus,
        effects: &mut Vec<Effect>,
    ) {
        let is_requested = self.is_requested(now, node);
        let Some(tracked) = self.nodes.get_mut(&node.value.id).filter(|_| !is_requested) else {
            return;
        };
        self.pace.begin();
        tracked.requested = Some((node.modify_index, now.plus(self.config.write_retry)));
        effects.push(Effect::Transition(Transition {
            node_id: node.value.id,
            from: node.value.status,
            to,
            modify_index: node.modify_index,
        }));
    }

    /// Records a heartbeat.
    fn record_heartbeat(&mut self, id: NodeId, stream: StreamId, alive_until: Timestamp) {
        self.set(id, alive_until, Some(stream));
        self.changed.insert(id);
    }

    /// Assumes that a node is alive until then, without a heartbeat.
    fn assume_alive(&mut self, id: NodeId, alive_until: Timestamp) {
        self.set(id, alive_until, None);
    }

    fn set(&mut self, id: NodeId, alive_until: Timestamp, stream: Option<StreamId>) {
        let old = self.nodes.get(&id).copied();
        if let Some(old) = old {
            self.timers.remove(&(old.timer, id));
        }
        self.timers.insert((alive_until, id));
        let requested = old.and_then(|old| old.requested);
        self.nodes.insert(
            id,
            Tracked {
                alive_until,
                stream,
                is_extended: false,
                heard: stream.is_some(),
                timer: alive_until,
                requested,
            },
        );
    }

    fn schedule_checks(&mut self, ids: &[NodeId], at: Timestamp) {
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
