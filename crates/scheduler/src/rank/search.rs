//! Finds nodes for one task group, one allocation after the other.
//!
//! In reading order: here every kind of node is asked, and nodes are put on shelves; `room` asks one
//! node, `volumes` what it has; `find` takes the best off the shelves; `changes` counts what comes and
//! goes.

mod changes;
mod find;
mod room;
mod volumes;

use std::collections::BTreeSet;

use model::{AllocId, AllocMetric, NodeId};
use placement::{Level, PortAsk, Requirements};
use state::{AllocView, NodeRow};

use crate::cluster::Cluster;
use crate::preempt::Claim;
use crate::rank::affinity::Affinities;
use crate::rank::crowd::Crowd;
use crate::rank::explain::Groundwork;
use crate::rank::given::Given;
use crate::rank::preferences::Preferences;
use crate::rank::property::PropertyLimit;
use crate::rank::score::{Parts, SameFit};
use crate::rank::shelves::{Entry, Place, Shelves};
use crate::rank::spread::SpreadUse;
use model::Algorithm;

/// What a group asks for, and where it is already.
pub(crate) struct Ask<'a> {
    pub(crate) requirements: &'a Requirements,
    pub(crate) preferences: Preferences,
    pub(crate) count: u32,
    pub(crate) algorithm: Algorithm,
    /// The job's allocations that hold a share.
    pub(crate) live: Vec<Neighbour>,
    /// Others may have to make way; `None`: nobody has to.
    pub(crate) claim: Option<Claim>,
}

/// One of a job's allocations, to the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    pub(crate) node_id: NodeId,
    pub(crate) is_of_group: bool,
    /// It does not stay with those that ask: it is not to be spread from.
    pub(crate) parts: bool,
    /// What is to be distinct may be shared with it, as it parts.
    pub(crate) may_share: bool,
}

/// What one allocation asks for beyond what its group does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    /// Taken if it fits at all: the data is there.
    pub(crate) preferred: Option<NodeId>,
    /// Where it has failed before.
    pub(crate) penalised: Vec<NodeId>,
    /// The number in its name, by which it may ask for volumes of its own.
    pub(crate) name_index: u32,
}

/// A place for one allocation.
#[derive(Clone, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) position: usize,
    pub(crate) node_id: NodeId,
    pub(crate) given: Given,
    pub(crate) metric: Box<AllocMetric>,
    /// Those that have to make way there.
    pub(crate) victims: Vec<&'a AllocView>,
}

/// The search for one group.
pub(crate) struct Search<'a, 'c> {
    pub(crate) cluster: &'c mut Cluster<'a>,
    pub(crate) requirements: &'a Requirements,
    count: u32,
    pub(super) algorithm: Algorithm,
    affinities: Affinities,
    pub(super) spreads: Vec<SpreadUse>,
    properties: Vec<PropertyLimit<'a>>,
    shelves: Shelves,
    /// By the position of the node.
    pub(super) places: Vec<Place>,
    /// What is the same for every allocation of the group.
    pub(super) groundwork: Groundwork,
    /// Nodes without room, for when others may have to make way.
    pub(super) crowd: Option<Crowd>,
    has_static_ports: bool,
    /// The number in the name of the allocation that a place is looked for, if it asks for volumes
    /// of its own.
    own_volumes_of: Option<u32>,
    /// The number in its name, whatever it asks for.
    name_index: u32,
    /// The one whose place it takes, which ends before it starts.
    pub(crate) replacing: Option<AllocId>,
    /// Claims tie it to these; `None`: to none.
    tied_to: Option<BTreeSet<NodeId>>,
    pub(super) has_told_runners_up: bool,
}

impl<'a, 'c> Search<'a, 'c> {
    /// Asks every kind of node, and scores every node of those that suit.
    pub(crate) fn new(cluster: &'c mut Cluster<'a>, ask: Ask<'a>) -> Self {
        let table = cluster.table;
        cluster.forget_job();
        let mut live = Vec::with_capacity(ask.live.len());
        let hosts = ask.requirements.distinct_hosts;
        for neighbour in ask.live {
            let Some(position) = table.position(neighbour.node_id) else {
                continue;
            };
            live.push((position, neighbour));
            let slot = cluster.slot_mut(position);
            slot.of_job += 1;
            slot.of_group += u32::from(neighbour.is_of_group);
            let is_looked_at =
                hosts.is_some_and(|hosts| hosts.level == Level::Job || neighbour.is_of_group);
            slot.of_other_generation += u32::from(is_looked_at && neighbour.may_share);
        }
        let of_group = || {
            let own = live.iter();
            let own = own.filter(|(_, neighbour)| neighbour.is_of_group && !neighbour.parts);
            own.map(|(node, _)| *node)
        };
        let rules = ask.preferences.spreads.iter();
        let spreads = rules
            .map(|rule| SpreadUse::new(rule, table, of_group()))
            .collect();
        let rules = ask.requirements.distinct_properties.iter();
        let properties = rules
            .map(|rule| PropertyLimit::new(rule, table, &live))
            .collect();
        let mut scorers = 1.0;
        if ask.preferences.has_affinities() {
            scorers += 1.0;
        }
        if ask.requirements.exclusive.has_device_affinities() {
            scorers += 1.0;
        }
        let mut search = Self {
            affinities: Affinities::new(table, &ask.preferences),
            cluster,
            requirements: ask.requirements,
            count: ask.count,
            algorithm: ask.algorithm,
            spreads,
            properties,
            shelves: Shelves::new(ask.preferences.spreads.len(), scorers),
            places: Vec::new(),
            groundwork: Groundwork::new(table, ask.requirements),
            has_static_ports: ask.requirements.ports.iter().any(is_static),
            own_volumes_of: None,
            name_index: 0,
            replacing: None,
            tied_to: None,
            crowd: ask.claim.map(Crowd::new),
            has_told_runners_up: false,
        };
        search.ask_nodes();
        search
    }

    fn ask_nodes(&mut self) {
        let table = self.cluster.table;
        let combinations = self.combinations_of_kinds();
        let asks_nodes = self.requirements.asks_nodes();
        let mut entries = Vec::<Vec<Entry>>::new();
        // How many nodes a shelf has if all have the same: a guess that saves growing. Where nodes
        // differ one by one there may be as many shelves, with a node each.
        let expected = match &combinations {
            Some(_) => table.row_count() / self.shelves.combination_count().max(1) + 1,
            None => 1,
        };
        self.places.reserve(table.row_count());
        let mut fits = SameFit::default();
        let mut node = 0_u32;
        for row in table.chunks().flatten() {
            let position = node as usize;
            node += 1;
            if !row.is_schedulable || !self.groundwork.suits(row.kind) {
                self.places.push(Place::NOWHERE);
                continue;
            }
            if asks_nodes && !self.ask_node(position) {
                self.places.push(Place::NOWHERE);
                continue;
            }
            let combination = match &combinations {
                Some(of_kinds) => of_kinds[row.kind as usize],
                None => self.combination_at(position),
            };
            let shelf = Shelves::shelf(combination, false);
            self.places.push(Place { shelf, changes: 0 });
            // As if nothing differed from the table; where something does is asked again below.
            let Some(room) = self.room_beside(position, row, row.used, row.free_allocs) else {
                self.groundwork.exhausted += 1;
                continue;
            };
            let parts = Parts {
                fit: fits.of(self.algorithm, row.available, room.after),
                anti_affinity: None,
                is_penalised: false,
                affinity: self.affinities.of(position, row),
                spread: 0.0,
                devices: room.devices,
                preemption: None,
            };
            let shelf = shelf as usize;
            if entries.len() <= shelf {
                entries.resize_with(shelf + 1, Vec::new);
            }
            if entries[shelf].capacity() == 0 {
                entries[shelf].reserve(expected);
            }
            entries[shelf].push(self.entry(row.id, node - 1, &parts, 0));
        }
        self.shelves.fill(entries);
        for position in self.cluster.touched().collect::<Vec<_>>() {
            self.rescore(position);
        }
    }

    /// Asks what only the node itself can answer, and remembers the answer's reason.
    fn ask_node(&mut self, position: usize) -> bool {
        let Some(node) = self.cluster.table.node(position) else {
            return false;
        };
        match self.requirements.check_own(&node.value) {
            Ok(()) => true,
            Err(infeasible) => {
                self.groundwork.filter(infeasible.reason(), 1);
                false
            }
        }
    }

    /// Returns the combination of each kind's nodes; `None`: nodes of one kind differ.
    fn combinations_of_kinds(&mut self) -> Option<Vec<u32>> {
        if !self.spreads.iter().all(SpreadUse::is_shared) {
            return None;
        }
        let mut keys = vec![0; self.spreads.len()];
        let mut combinations = Vec::new();
        for kind in 0..self.cluster.table.kinds().len() {
            let mut combination = 0;
            if u32::try_from(kind).is_ok_and(|kind| self.groundwork.suits(kind)) {
                for (key, spread) in keys.iter_mut().zip(&self.spreads) {
                    *key = spread.key_of_kind(kind)?;
                }
                let spreads = &self.spreads;
                combination = self.shelves.combination(&keys, |keys| total(spreads, keys));
            }
            combinations.push(combination);
        }
        Some(combinations)
    }

    fn combination_at(&mut self, position: usize) -> u32 {
        let table = self.cluster.table;
        let spreads = &self.spreads;
        let key = |spread: &SpreadUse| spread.key_at(table, position);
        if let [spread] = spreads.as_slice() {
            let keys = [key(spread)];
            return self.shelves.combination(&keys, |keys| total(spreads, keys));
        }
        let keys: Vec<_> = spreads.iter().map(key).collect();
        self.shelves.combination(&keys, |keys| total(spreads, keys))
    }

    /// Returns the nodes that could take one of the group, if it were for facts alone.
    pub(crate) fn feasible(&self) -> impl Iterator<Item = (usize, &NodeRow)> {
        let rows = self.cluster.table.chunks().flatten();
        let places = rows.zip(&self.places).enumerate();
        places
            .filter(|(_, (_, place))| place.is_somewhere())
            .map(|(position, (row, _))| (position, row))
    }

    /// Returns why no node takes one more.
    pub(crate) fn explain(&self) -> AllocMetric {
        self.groundwork.failed(self)
    }
}

fn is_static(ask: &PortAsk) -> bool {
    ask.static_port.is_some()
}

/// Returns what all spreads together say of nodes with these keys.
fn total(spreads: &[SpreadUse], keys: &[u32]) -> f64 {
    let boosts = spreads
        .iter()
        .zip(keys)
        .map(|(spread, key)| spread.boost(*key));
    boosts.sum()
}
