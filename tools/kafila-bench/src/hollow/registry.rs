//! The allocations that each node of a fleet runs, the progress of a load, and the violations.
//!
//! Pure; times are milliseconds since the start of the run.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use super::node::{Event, Millis, Slot};

#[cfg(test)]
mod tests;

#[derive(Debug)]
struct Running {
    node: u32,
    slot: Slot,
    is_canary: bool,
    is_reported: bool,
}

/// Two running allocations of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair(pub(crate) u128, pub(crate) u128);

/// The knowledge about a fleet. Its nodes tell it what happens on them.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    names: Vec<String>,
    groups: HashMap<String, u32>,
    running: HashMap<u128, Running>,
    slots: HashMap<Slot, Vec<u128>>,
    /// Pairs that run at the same time, with the start of that.
    pairs: BTreeMap<Pair, Millis>,
    /// Names that ran on a node that died, with the time of the death.
    missing: HashMap<Slot, Millis>,
    /// Groups whose first allocation is awaited, with the time of their registration.
    awaited: HashMap<u32, Millis>,
    pub(crate) progress: Progress,
    pub(crate) violations: Vec<String>,
}

/// Counts since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Allocations that have come to a node to run.
    pub(crate) assigned: u64,
    /// Of them, those whose start the servers have acknowledged.
    pub(crate) reported: u64,
    /// Ended allocations whose end the servers have acknowledged.
    pub(crate) ended: u64,
    /// Nodes that the servers called down.
    pub(crate) downs: u64,
    /// Running allocations of living nodes that the servers called lost.
    pub(crate) lost: u64,
    /// From the registration of a job to its first assignment on a node.
    pub(crate) placed_after: Vec<Millis>,
    /// From the death of a node to the start of each replacement.
    pub(crate) replaced_after: Vec<Millis>,
}

impl Registry {
    /// Returns the number of a group.
    pub(crate) fn group(&mut self, namespace: &str, job: &str, group: &str) -> u32 {
        let name = format!("{namespace}/{job}/{group}");
        if let Some(number) = self.groups.get(&name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.groups.insert(name, number);
        number
    }

    /// Measures the time until the first allocation of a group comes to a node.
    pub(crate) fn await_first(&mut self, group: u32, now: Millis) {
        self.awaited.insert(group, now);
    }

    /// Returns the number of groups without an allocation yet.
    pub(crate) fn awaited(&self) -> usize {
        self.awaited.len()
    }

    /// Returns the number of names that ran on dead nodes and run nowhere since.
    pub(crate) fn missing(&self) -> usize {
        self.missing.len()
    }

    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// Records the events of a node.
    pub(crate) fn record(&mut self, node: u32, events: &[Event], now: Millis) {
        for event in events {
            match *event {
                Event::Assigned { slot, .. } => {
                    self.progress.assigned += 1;
                    if let Some(since) = self.awaited.remove(&slot.group) {
                        self.progress.placed_after.push(now - since.min(now));
                    }
                }
                Event::Started {
                    id,
                    slot,
                    is_canary,
                } => {
                    self.started(node, id, slot, is_canary, now);
                }
                Event::Ended { id, slot } => self.ended(node, id, slot),
                Event::CalledLost { id, slot } => {
                    self.progress.lost += 1;
                    let (alloc, name) = (Uuid::from_u128(id), self.name(slot));
                    self.violations.push(format!(
                        "allocation {alloc} ({name}) is lost for the servers and runs on living node {node}"
                    ));
                }
            }
        }
    }

    /// Records the death of a node, with what ran there.
    pub(crate) fn died(&mut self, node: u32, events: &[Event], now: Millis) {
        self.record(node, events, now);
        for event in events {
            if let Event::Ended { slot, .. } = event
                && !self.slots.contains_key(slot)
            {
                self.missing.insert(*slot, now);
            }
        }
    }

    fn started(&mut self, node: u32, id: u128, slot: Slot, is_canary: bool, now: Millis) {
        let running = Running {
            node,
            slot,
            is_canary,
            is_reported: false,
        };
        if let Some(other) = self.running.insert(id, running) {
            let (alloc, name, first) = (Uuid::from_u128(id), self.name(slot), other.node);
            self.violations.push(format!(
                "allocation {alloc} ({name}) runs twice: on nodes {first} and {node}"
            ));
            return;
        }
        if let Some(since) = self.missing.remove(&slot) {
            self.progress.replaced_after.push(now - since.min(now));
        }
        let others = self.slots.entry(slot).or_default();
        if !is_canary {
            for other in &*others {
                let is_canary = self.running.get(other).is_none_or(|other| other.is_canary);
                if !is_canary {
                    self.pairs.insert(Pair(*other, id), now);
                }
            }
        }
        others.push(id);
    }

    fn ended(&mut self, node: u32, id: u128, slot: Slot) {
        // A second copy elsewhere goes on.
        if self
            .running
            .get(&id)
            .is_none_or(|running| running.node != node)
        {
            return;
        }
        self.running.remove(&id);
        self.pairs.retain(|pair, _| pair.0 != id && pair.1 != id);
        if let Some(ids) = self.slots.get_mut(&slot) {
            ids.retain(|known| *known != id);
            if ids.is_empty() {
                self.slots.remove(&slot);
            }
        }
    }

    /// Records that the servers have stored that the allocation runs.
    pub(crate) fn acknowledged_running(&mut self, id: u128) {
        if let Some(running) = self.running.get_mut(&id)
            && !std::mem::replace(&mut running.is_reported, true)
        {
            self.progress.reported += 1;
        }
    }

    /// Records that the servers called a node down. `silence`: the longest time between two of its
    /// latest heartbeats.
    pub(crate) fn called_down(&mut self, node: u32, silence: Millis, ttl: Millis) {
        self.progress.downs += 1;
        if silence <= ttl {
            self.violations.push(format!(
                "node {node} is down for the servers, although it sent a heartbeat every {silence} ms or \
                 more often (time to live: {ttl} ms)"
            ));
        }
    }

    /// Returns the pairs that have run together for `least`: the servers know whether they want both.
    pub(crate) fn pairs(&self, now: Millis, least: Millis) -> Vec<Pair> {
        let old = self
            .pairs
            .iter()
            .filter(|(_, since)| **since + least <= now);
        old.map(|(pair, _)| *pair).collect()
    }

    /// Records that the servers want both allocations of a pair to run.
    pub(crate) fn doubled(&mut self, pair: Pair) {
        if self.pairs.remove(&pair).is_none() {
            return;
        }
        let Some(running) = self.running.get(&pair.0) else {
            return;
        };
        let (name, first, second) = (
            self.name(running.slot),
            Uuid::from_u128(pair.0),
            Uuid::from_u128(pair.1),
        );
        self.violations.push(format!(
            "{name} runs twice, and the servers want both to run: allocations {first} and {second}"
        ));
    }

    fn name(&self, slot: Slot) -> String {
        let group = self.names.get(slot.group as usize);
        let group = group.map_or("an unknown group", String::as_str);
        format!("{group}[{}]", slot.index)
    }
}
