//! Finds nodes for one task group, one allocation after the other.

use model::{AllocMetric, AllocatedPort, AllocatedResources, NodeId};
use placement::distinct::PropertyUse;
use placement::ports::check_static;
use placement::{DistinctHosts, Exhausted, Feasibility, Level, Requirements, assign_ports, fits};
use state::AllocView;

use crate::cluster::Cluster;
use crate::draw::Draw;
use crate::in_place::counts;
use crate::rank::ranking::{Entry, Ranking};
use crate::rank::score::{RESCHEDULE_PENALTY, Score, anti_affinity};

/// What one allocation asks for beyond what its group does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    /// Taken if it fits at all: the data is there.
    pub(crate) preferred: Option<NodeId>,
    /// Where it has failed before.
    pub(crate) penalised: Vec<NodeId>,
}

/// A place for one allocation.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) position: usize,
    pub(crate) mean: f64,
    pub(crate) ports: Vec<AllocatedPort>,
}

/// The search for one group.
pub(crate) struct Search<'a, 'c> {
    cluster: &'c mut Cluster<'a>,
    requirements: &'a Requirements,
    group: &'a str,
    count: u32,
    ranking: Ranking,
    /// Whether each node of the cluster can run the group, whatever else runs there.
    feasible: Vec<bool>,
    /// Nodes that came up while a distinct constraint ruled them out; a stop may let them in again.
    parked: Vec<Entry>,
    properties: Vec<PropertyUse<'a>>,
    /// What is the same for every allocation of the group.
    metric: AllocMetric,
}

impl<'a, 'c> Search<'a, 'c> {
    /// Asks and scores every node; `live` are the job's allocations that hold a share.
    pub(crate) fn new(
        cluster: &'c mut Cluster<'a>,
        requirements: &'a Requirements,
        group: &'a str,
        count: u32,
        live: impl Iterator<Item = (NodeId, bool)>,
        mut properties: Vec<PropertyUse<'a>>,
    ) -> Self {
        for slot in &mut cluster.slots {
            slot.of_job = 0;
            slot.of_group = 0;
        }
        for (node_id, is_of_group) in live {
            let Some(position) = cluster.position(node_id) else {
                continue;
            };
            let slot = &mut cluster.slots[position];
            slot.of_job += 1;
            slot.of_group += u32::from(is_of_group);
        }
        properties.shrink_to_fit();
        let mut search = Self {
            cluster,
            requirements,
            group,
            count,
            ranking: Ranking::default(),
            feasible: Vec::new(),
            parked: Vec::new(),
            properties,
            metric: AllocMetric::default(),
        };
        search.ask_nodes();
        search
    }

    fn ask_nodes(&mut self) {
        let mut feasibility = Feasibility::new(self.requirements);
        let mut entries = Vec::with_capacity(self.cluster.slots.len());
        for (position, slot) in self.cluster.slots.iter().enumerate() {
            let answer = feasibility.check(slot.node);
            self.feasible.push(answer.is_ok());
            match answer {
                Ok(()) => match self.entry(position) {
                    Some(entry) => entries.push(entry),
                    None => self.metric.nodes_exhausted += 1,
                },
                Err(infeasible) => {
                    self.metric.nodes_filtered += 1;
                    add(&mut self.metric.constraint_filtered, infeasible.reason());
                }
            }
        }
        self.ranking = Ranking::from_entries(entries);
        let nodes = u32::try_from(self.cluster.slots.len()).unwrap_or(u32::MAX);
        self.metric.nodes_evaluated = nodes;
        self.metric.nodes_in_pool = nodes;
    }

    /// Returns the best node for one more allocation; the caller takes it with [`Self::take`].
    pub(crate) fn find(&mut self, wish: &Wish, draw: &mut Draw) -> Option<Found> {
        if let Some(found) = self.find_preferred(wish, draw) {
            return Some(found);
        }
        let mut penalised = Vec::new();
        let mut best = None;
        while let Some(entry) = self.pop() {
            let node_id = self.cluster.slots[entry.position].node.id;
            if wish.penalised.contains(&node_id) {
                penalised.push(entry);
            } else if let Some(found) = self.accept(entry, draw) {
                best = Some((entry, found));
                break;
            }
        }
        for entry in penalised {
            let mean = self
                .score(entry.position)
                .map(|score| score.and(RESCHEDULE_PENALTY).mean());
            let is_better = match (&best, mean) {
                (Some((_, found)), Some(mean)) => mean > found.mean,
                (None, Some(_)) => true,
                (_, None) => false,
            };
            let accepted = if is_better {
                self.accept(entry, draw)
            } else {
                None
            };
            match (accepted, mean) {
                (Some(found), Some(mean)) => {
                    let loser = best.replace((entry, Found { mean, ..found }));
                    self.ranking_extend(loser.map(|(entry, _)| entry));
                }
                _ if is_better => {}
                _ => self.ranking.push(entry),
            }
        }
        best.map(|(_, found)| found)
    }

    fn ranking_extend(&mut self, entry: Option<Entry>) {
        if let Some(entry) = entry {
            self.ranking.push(entry);
        }
    }

    fn pop(&mut self) -> Option<Entry> {
        let slots = &self.cluster.slots;
        self.ranking
            .pop(|entry| slots[entry.position].changes == entry.changes)
    }

    fn find_preferred(&mut self, wish: &Wish, draw: &mut Draw) -> Option<Found> {
        let position = self.cluster.position(wish.preferred?)?;
        if !self.feasible[position] {
            return None;
        }
        let entry = self.entry(position)?;
        self.accept(entry, draw)
    }

    /// Gives the node of `entry` to an allocation, unless something rules it out; then it comes up
    /// again only after a change.
    fn accept(&mut self, entry: Entry, draw: &mut Draw) -> Option<Found> {
        if self.ruled_out(entry.position).is_some() {
            self.parked.push(entry);
            return None;
        }
        let slot = &self.cluster.slots[entry.position];
        let asks = &self.requirements.ports;
        let ports = if asks.is_empty() {
            Vec::new()
        } else {
            assign_ports(slot.node, &slot.usage, asks, |bound| draw.below(bound)).ok()?
        };
        Some(Found {
            position: entry.position,
            mean: entry.mean,
            ports,
        })
    }

    /// Counts one more allocation of the group on a node that was found.
    pub(crate) fn take(&mut self, position: usize, resources: &AllocatedResources) {
        let slot = &mut self.cluster.slots[position];
        slot.usage.add(resources);
        slot.of_job += 1;
        slot.of_group += 1;
        let node = slot.node;
        for property in &mut self.properties {
            property.add(node);
        }
        self.rescore(position);
    }

    /// Counts what `view`, an allocation of the group that is stopped, gives up.
    pub(crate) fn release(&mut self, view: &AllocView, node: Option<&model::Node>) {
        if let Some(position) = self.cluster.position(view.alloc.node_id) {
            let slot = &mut self.cluster.slots[position];
            slot.usage.remove(&view.alloc.resources);
            slot.of_job = slot.of_job.saturating_sub(1);
            slot.of_group = slot.of_group.saturating_sub(1);
            self.rescore(position);
        }
        for property in &mut self.properties {
            if let Some(node) = node.filter(|_| counts(property.level(), self.group, view)) {
                property.remove(node);
            }
        }
        for entry in std::mem::take(&mut self.parked) {
            self.ranking.push(entry);
        }
    }

    /// Takes back [`Self::release`].
    pub(crate) fn hold(&mut self, view: &AllocView, node: Option<&model::Node>) {
        if let Some(position) = self.cluster.position(view.alloc.node_id) {
            let slot = &mut self.cluster.slots[position];
            slot.usage.add(&view.alloc.resources);
            slot.of_job += 1;
            slot.of_group += 1;
            self.rescore(position);
        }
        for property in &mut self.properties {
            if let Some(node) = node.filter(|_| counts(property.level(), self.group, view)) {
                property.add(node);
            }
        }
    }

    fn rescore(&mut self, position: usize) {
        self.cluster.slots[position].changes += 1;
        if self.feasible[position]
            && let Some(entry) = self.entry(position)
        {
            self.ranking.push(entry);
        }
    }

    fn entry(&self, position: usize) -> Option<Entry> {
        let mean = self.score(position)?.mean();
        let slot = &self.cluster.slots[position];
        Some(Entry {
            key: mean + slot.jitter,
            mean,
            position,
            changes: slot.changes,
        })
    }

    /// Returns how good a node is for one more; `None` when it has no room.
    fn score(&self, position: usize) -> Option<Score> {
        let slot = &self.cluster.slots[position];
        if self.exhausted(position).is_some() {
            return None;
        }
        let after = slot.usage.total.plus(self.requirements.resources);
        let score = Score::of_fit(slot.available, after);
        Some(match slot.of_group {
            0 => score,
            collisions => score.and(anti_affinity(collisions, self.count)),
        })
    }

    fn exhausted(&self, position: usize) -> Option<Exhausted> {
        let slot = &self.cluster.slots[position];
        let ask = self.requirements.resources;
        check_static(slot.node, &slot.usage, &self.requirements.ports)
            .and_then(|()| fits(slot.available, slot.usage.total, ask))
            .err()
    }

    /// Returns why the job's other allocations keep one more off a node.
    fn ruled_out(&self, position: usize) -> Option<String> {
        let slot = &self.cluster.slots[position];
        let neighbours = match self
            .requirements
            .distinct_hosts
            .map(|distinct| distinct.level)
        {
            None => 0,
            Some(Level::Job) => slot.of_job,
            Some(Level::Group) => slot.of_group,
        };
        if neighbours > 0 {
            return Some(DistinctHosts::REASON.to_owned());
        }
        self.properties
            .iter()
            .find_map(|property| property.check(slot.node).err())
    }

    /// Returns what a placed allocation remembers of the search.
    pub(crate) fn placed_metric(&self, mean: f64) -> AllocMetric {
        AllocMetric {
            nodes_evaluated: self.metric.nodes_evaluated,
            nodes_filtered: self.metric.nodes_filtered,
            nodes_exhausted: self.metric.nodes_exhausted,
            nodes_in_pool: self.metric.nodes_in_pool,
            score_per_mille: crate::rank::score::per_mille(mean),
            ..AllocMetric::default()
        }
    }

    /// Returns why no node takes one more.
    pub(crate) fn explain(&self) -> AllocMetric {
        let mut metric = self.metric.clone();
        metric.nodes_exhausted = 0;
        metric
            .nodes_available
            .clone_from(&self.cluster.nodes_available);
        for (position, feasible) in self.feasible.iter().enumerate() {
            if !feasible {
                continue;
            }
            if let Some(reason) = self.ruled_out(position) {
                metric.nodes_filtered += 1;
                add(&mut metric.constraint_filtered, &reason);
            } else {
                let exhausted = self.exhausted(position).unwrap_or(Exhausted::DynamicPorts);
                metric.nodes_exhausted += 1;
                add(&mut metric.dimension_exhausted, &exhausted.to_string());
            }
        }
        metric
    }

    pub(crate) fn node_id(&self, position: usize) -> NodeId {
        self.cluster.slots[position].node.id
    }
}

fn add(counts: &mut std::collections::BTreeMap<String, u32>, reason: &str) {
    match counts.get_mut(reason) {
        Some(count) => *count += 1,
        None => drop(counts.insert(reason.to_owned(), 1)),
    }
}
