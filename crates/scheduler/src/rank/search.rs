//! Finds nodes for one task group, one allocation after the other.

use std::collections::BTreeSet;

use model::{AllocId, AllocMetric, AllocatedResources, ComparableResources, NodeId};
use placement::ports::check_static;
use placement::{
    Exclusive, Exhausted, Level, PortAsk, Requirements, VolumeAsks, VolumeWrites, assign_ports,
};
use state::{AllocView, NodeRow};

use crate::cluster::Cluster;
use crate::draw::Draw;
use crate::preempt::Claim;
use crate::rank::affinity::Affinities;
use crate::rank::crowd::Crowd;
use crate::rank::explain::{self, Groundwork};
use crate::rank::given::Given;
use crate::rank::preferences::Preferences;
use crate::rank::property::PropertyLimit;
use crate::rank::score::{NOTHING, Parts, anti_affinity, fit, penalised_mean};
use crate::rank::shelves::{Entry, Place, Shelves};
use crate::rank::spread::{Changed, SpreadUse};
use model::Algorithm;

/// What a group asks for, and where it is already.
pub(crate) struct Ask<'a> {
    pub(crate) requirements: &'a Requirements,
    pub(crate) preferences: Preferences,
    pub(crate) count: u32,
    pub(crate) algorithm: Algorithm,
    /// The nodes of the job's allocations that hold a share, and whether each is of the group.
    pub(crate) live: Vec<(NodeId, bool)>,
    /// Others may have to make way; `None`: nobody has to.
    pub(crate) claim: Option<Claim>,
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
    pub(crate) metric: AllocMetric,
    /// Those that have to make way there.
    pub(crate) victims: Vec<&'a AllocView>,
}

/// A node with one more allocation of the group on it.
struct Room {
    after: ComparableResources,
    /// What is said of its devices.
    devices: Option<f64>,
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
        for (node_id, is_of_group) in ask.live {
            let Some(position) = table.position(node_id) else {
                continue;
            };
            live.push((position, is_of_group));
            let slot = cluster.slot_mut(position);
            slot.of_job += 1;
            slot.of_group += u32::from(is_of_group);
        }
        let of_group = || live.iter().filter(|(_, own)| *own).map(|(node, _)| *node);
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
                fit: fit(self.algorithm, row.available, room.after),
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

    /// Returns the best node for one more allocation; the caller takes it with [`Self::take`].
    pub(crate) fn find(&mut self, wish: &Wish, draw: &mut Draw) -> Option<Found<'a>> {
        let asks_for_own = self.requirements.volumes.differ_by_alloc();
        self.own_volumes_of = asks_for_own.then_some(wish.name_index);
        self.name_index = wish.name_index;
        self.tied_to = self.ties();
        if let Some(found) = self.find_preferred(wish, draw) {
            return Some(found);
        }
        // Nothing for this allocation, but perhaps for the next.
        let mut passed_over = Vec::new();
        let mut penalised = Vec::new();
        let mut best = None;
        while let Some((entry, shelf, score)) = self.next(draw) {
            if !self.has_own_volumes(entry.position()) {
                passed_over.push((entry, shelf));
                continue;
            }
            if self.volume_is_taken(entry.position()) {
                // As with what `accept` rules out: it comes up again after a change.
                if asks_for_own {
                    passed_over.push((entry, shelf));
                }
                continue;
            }
            if !wish.penalised.is_empty() {
                let node_id = self.cluster.table.row(entry.position()).id;
                if wish.penalised.contains(&node_id) {
                    penalised.push((entry, shelf));
                    continue;
                }
            }
            if let Some(given) = self.accept(entry, draw) {
                best = Some((entry, shelf, score, given));
                break;
            }
        }
        for (entry, shelf) in passed_over {
            self.shelves.push(shelf, entry, &self.places);
        }
        self.weigh_penalised(penalised, &mut best, draw);
        let (entry, _, _, given) = best?;
        Some(self.found(entry.position(), wish, given))
    }

    /// Takes out the best node, or one of the best that the job likes no less: only the fit may be
    /// worse.
    fn next(&mut self, draw: &mut Draw) -> Option<(Entry, u32, f64)> {
        let among = draw.choice().among as usize;
        if among <= 1 {
            return self.shelves.pop(&self.places);
        }
        let first = self.shelves.pop(&self.places)?;
        let liking = self.liking(first.0);
        let mut liked = vec![first];
        let mut others = Vec::new();
        while liked.len() + others.len() < among
            && let Some(next) = self.shelves.pop(&self.places)
        {
            if self.liking(next.0) < liking - NOTHING {
                others.push(next);
            } else {
                liked.push(next);
            }
        }
        let count = u32::try_from(liked.len()).ok()?;
        let drawn = liked.swap_remove(draw.below(count) as usize);
        for (entry, shelf, _) in liked.into_iter().chain(others) {
            self.shelves.push(shelf, entry, &self.places);
        }
        Some(drawn)
    }

    /// Returns what is said of a node apart from how full it is.
    fn liking(&self, entry: Entry) -> f64 {
        let parts = self.parts(entry.position());
        parts.map_or(f64::NEG_INFINITY, |parts| parts.liking())
    }

    /// Lets the nodes on which a predecessor failed compete with the best of the others.
    fn weigh_penalised(
        &mut self,
        penalised: Vec<(Entry, u32)>,
        best: &mut Option<(Entry, u32, f64, Given)>,
        draw: &mut Draw,
    ) {
        for (entry, shelf) in penalised {
            let parts = self.parts(entry.position());
            let Some(parts) = parts else { continue };
            let (_, scorers) = parts.base();
            let score = penalised_mean(entry.key, scorers, parts.spread);
            let is_better = best.as_ref().is_none_or(|(_, _, other, _)| score > *other);
            if !is_better {
                self.shelves.push(shelf, entry, &self.places);
                continue;
            }
            let Some(given) = self.accept(entry, draw) else {
                continue;
            };
            if let Some((loser, shelf, _, _)) = best.replace((entry, shelf, score, given)) {
                self.shelves.push(shelf, loser, &self.places);
            }
        }
    }

    fn node_id(&self, entry: Entry) -> NodeId {
        self.cluster.table.row(entry.position()).id
    }

    fn find_preferred(&mut self, wish: &Wish, draw: &mut Draw) -> Option<Found<'a>> {
        let position = self.cluster.position(wish.preferred?)?;
        if !self.places[position].is_somewhere()
            || self.is_next_to_another(position)
            || !self.volumes_serve(position)
        {
            return None;
        }
        let parts = self.parts(position)?;
        let row = self.cluster.table.row(position);
        let node = u32::try_from(position).ok()?;
        let entry = self.entry(row.id, node, &parts, self.places[position].changes);
        if self.limit_at(position).is_some() {
            // Its entry is still on its shelf, so nothing is to be parked.
            return None;
        }
        let given = self.accept(entry, draw)?;
        Some(self.found(position, wish, given))
    }

    /// Gives the node of `entry` to an allocation, unless something rules it out; then it comes up
    /// again only after a change.
    fn accept(&mut self, entry: Entry, draw: &mut Draw) -> Option<Given> {
        let position = entry.position();
        let table = self.cluster.table;
        if let Some(limit) = self.limit_at(position) {
            self.properties[limit].park(table, entry);
            return None;
        }
        let (asks, exclusive) = (&self.requirements.ports, &self.requirements.exclusive);
        let mut given = Given::default();
        if asks.is_empty() && exclusive.is_empty() {
            return Some(given);
        }
        let node = &table.node(position)?.value;
        if !asks.is_empty() {
            let held = self.cluster.ports(position);
            given.ports = assign_ports(node, held, asks, |bound| draw.below(bound)).ok()?;
        }
        if !exclusive.is_empty() {
            let holding = self.cluster.holding(position);
            given.exclusive = exclusive.assign(node, &holding).ok()?;
        }
        Some(given)
    }

    fn found(&mut self, position: usize, wish: &Wish, given: Given) -> Found<'a> {
        let parts = self.parts_for(position, wish);
        let parts = parts.expect("a node that was found has room");
        let mut metric = self.groundwork.placed(&parts);
        if !self.has_told_runners_up {
            self.has_told_runners_up = true;
            metric.runners_up = self.runners_up(position, wish);
        }
        Found {
            position,
            node_id: self.cluster.table.row(position).id,
            given,
            metric,
            victims: Vec::new(),
        }
    }

    /// Returns the scores of the next best nodes after the one at `position`.
    fn runners_up(&mut self, position: usize, wish: &Wish) -> Vec<model::NodeScore> {
        let mut seen = Vec::new();
        let mut scores = Vec::new();
        while seen.len() < explain::RUNNERS_UP_MAX + 1 && scores.len() < explain::RUNNERS_UP_MAX {
            let Some((entry, shelf, _)) = self.shelves.pop(&self.places) else {
                break;
            };
            seen.push((entry, shelf));
            let other = entry.position();
            if other == position || self.limit_at(other).is_some() || !self.volumes_serve(other) {
                continue;
            }
            if let Some(parts) = self.parts_for(other, wish) {
                scores.push(explain::node_score(self.node_id(entry), &parts));
            }
        }
        for (entry, shelf) in seen {
            self.shelves.push(shelf, entry, &self.places);
        }
        scores.sort_by_key(|score| std::cmp::Reverse(score.per_mille));
        scores
    }

    /// Counts one more allocation of the group on a node that was found.
    pub(crate) fn take(&mut self, position: usize, resources: &AllocatedResources) {
        self.cluster.hold(position, resources);
        self.join(position);
    }

    /// Counts what `view`, an allocation of the group that is stopped, gives up.
    pub(crate) fn release(&mut self, view: &AllocView) {
        self.cluster
            .release(view.alloc.node_id, &view.alloc.resources);
        if let Some(position) = self.cluster.position(view.alloc.node_id) {
            self.leave(position);
        }
    }

    /// Takes back [`Self::release`].
    pub(crate) fn hold(&mut self, view: &AllocView) {
        if let Some(position) = self.cluster.position(view.alloc.node_id) {
            self.cluster.hold(position, &view.alloc.resources);
            self.join(position);
        }
    }

    /// One more of the group is on the node.
    fn join(&mut self, position: usize) {
        let table = self.cluster.table;
        let slot = self.cluster.slot_mut(position);
        slot.of_job += 1;
        slot.of_group += 1;
        for property in &mut self.properties {
            property.add(table, position);
        }
        self.count_in_spreads(position, SpreadUse::add);
        self.rescore(position);
    }

    /// One of the group less is on the node.
    fn leave(&mut self, position: usize) {
        let table = self.cluster.table;
        let slot = self.cluster.slot_mut(position);
        slot.of_job = slot.of_job.saturating_sub(1);
        slot.of_group = slot.of_group.saturating_sub(1);
        let mut let_in = Vec::new();
        for property in &mut self.properties {
            let_in.append(&mut property.remove(table, position));
        }
        for entry in let_in {
            let place = self.places[entry.position()];
            if place.is_somewhere() && place.changes == entry.changes {
                self.shelves.push(place.shelf, entry, &self.places);
            }
        }
        self.count_in_spreads(position, SpreadUse::remove);
        self.rescore(position);
    }

    /// Lets every spread count a change at a node, and tells the shelves that are told otherwise now.
    fn count_in_spreads(
        &mut self,
        position: usize,
        count: impl Fn(&mut SpreadUse, u32) -> Changed,
    ) {
        let table = self.cluster.table;
        for number in 0..self.spreads.len() {
            let value = self.spreads[number].value_at(table, position);
            let changed = count(&mut self.spreads[number], value);
            let key = match changed {
                Changed::Nobody => None,
                Changed::Key(key) => Some(Some(key)),
                Changed::Everybody => Some(None),
            };
            if let Some(key) = key {
                let spreads = &self.spreads;
                self.shelves.tell(number, key, |keys| total(spreads, keys));
            }
            for node in 0..self.spreads[number].nodes_of(value).len() {
                let node = self.spreads[number].nodes_of(value)[node];
                self.rescore(node);
            }
        }
    }

    /// Puts a node that has changed where it belongs now.
    fn rescore(&mut self, position: usize) {
        let place = self.places[position];
        if !place.is_somewhere() {
            return;
        }
        if let Some(crowd) = &mut self.crowd {
            crowd.touch(position);
        }
        let changes = place.changes + 1;
        self.places[position].changes = changes;
        self.shelves.refresh(place.shelf, &self.places);
        if self.is_next_to_another(position) {
            return;
        }
        let Some(parts) = self.parts(position) else {
            return;
        };
        let combination = if self.spreads.iter().all(SpreadUse::is_shared) {
            place.shelf / 2
        } else {
            self.combination_at(position)
        };
        let shelf = Shelves::shelf(combination, parts.anti_affinity.is_some());
        self.places[position].shelf = shelf;
        let row = self.cluster.table.row(position);
        let Ok(node) = u32::try_from(position) else {
            return;
        };
        let entry = self.entry(row.id, node, &parts, changes);
        self.shelves.push(shelf, entry, &self.places);
    }

    /// Makes the entry of a node: its lot weighs as much in the mean as a near-tie allows.
    fn entry(&self, id: NodeId, node: u32, parts: &Parts, changes: u32) -> Entry {
        let (sum, scorers) = parts.base();
        Entry {
            key: sum + self.cluster.lot(id) * self.cluster.near_tie * scorers,
            node,
            changes,
        }
    }

    /// Returns how good a node is for an allocation with this wish; `None` when it has no room.
    fn parts_for(&self, position: usize, wish: &Wish) -> Option<Parts> {
        let node_id = self.cluster.table.row(position).id;
        Some(Parts {
            is_penalised: wish.penalised.contains(&node_id),
            ..self.parts(position)?
        })
    }

    /// Returns how good a node is for one more; `None` when it has no room.
    pub(crate) fn parts(&self, position: usize) -> Option<Parts> {
        let row = self.cluster.table.row(position);
        let room = self.room(position, row)?;
        Some(self.parts_with(position, row, room.after, room.devices))
    }

    /// Returns how good a node is that holds `after` with one more on it, with `devices` said of the
    /// devices that it gets.
    pub(super) fn parts_with(
        &self,
        position: usize,
        row: &NodeRow,
        after: ComparableResources,
        devices: Option<f64>,
    ) -> Parts {
        let of_group = self.cluster.slot(position).map_or(0, |slot| slot.of_group);
        let shelf = self.places[position].shelf;
        Parts {
            fit: fit(self.algorithm, row.available, after),
            anti_affinity: anti_affinity(of_group, self.count),
            is_penalised: false,
            affinity: self.affinities.of(position, row),
            spread: self.shelves.total(shelf),
            devices,
            preemption: None,
        }
    }

    /// Returns what a node is like with one more on it; `None` when that is too much.
    fn room(&self, position: usize, row: &NodeRow) -> Option<Room> {
        let (used, free_allocs) = match self.cluster.slot(position) {
            Some(slot) => (slot.used, slot.free_allocs),
            None => (row.used, row.free_allocs),
        };
        self.room_beside(position, row, used, free_allocs)
    }

    /// As [`Self::room`], of a node of which `used` is used and that takes `free_allocs` more.
    ///
    /// What costs least is asked first; [`Self::exhausted`] tells of them in the right order.
    fn room_beside(
        &self,
        position: usize,
        row: &NodeRow,
        used: ComparableResources,
        free_allocs: i32,
    ) -> Option<Room> {
        let mut room = Room {
            after: used.plus(self.requirements.resources),
            devices: None,
        };
        if room.after.exceeds(row.available).is_some()
            || free_allocs < 1
            || self.lacks_ports(position).is_some()
        {
            return None;
        }
        if !self.requirements.exclusive.is_empty() {
            let given = self.exclusive(position).ok()?;
            room.after.cpu_mhz = room.after.cpu_mhz.saturating_add(given.cpu_mhz);
            if room.after.cpu_mhz > row.available.cpu_mhz {
                return None;
            }
            room.devices = given.device_score;
        }
        Some(room)
    }

    /// Returns the cores and devices that one more would get.
    fn exclusive(&self, position: usize) -> Result<Exclusive, Exhausted> {
        let Some(node) = self.cluster.table.node(position) else {
            return Err(Exhausted::Amount(Exhausted::CORES));
        };
        let holding = self.cluster.holding(position);
        self.requirements.exclusive.assign(&node.value, &holding)
    }

    /// Returns which static port is not free.
    fn lacks_ports(&self, position: usize) -> Option<Exhausted> {
        if !self.has_static_ports {
            return None;
        }
        let asks = &self.requirements.ports;
        let node = &self.cluster.table.node(position)?.value;
        check_static(node, self.cluster.ports(position), asks).err()
    }

    /// Tells whether `distinct_hosts` keeps one more off a node.
    pub(crate) fn is_next_to_another(&self, position: usize) -> bool {
        let Some(distinct) = self.requirements.distinct_hosts else {
            return false;
        };
        let slot = self.cluster.slot(position);
        slot.is_some_and(|slot| match distinct.level {
            Level::Job => slot.of_job > 0,
            Level::Group => slot.of_group > 0,
        })
    }

    /// Tells whether nothing about volumes keeps the allocation off a node that has those of its group.
    pub(super) fn volumes_serve(&self, position: usize) -> bool {
        self.has_own_volumes(position) && !self.volume_is_taken(position)
    }

    /// Returns where claims tie the group's next allocation to.
    pub(crate) fn ties(&self) -> Option<BTreeSet<NodeId>> {
        let volumes = &self.requirements.volumes;
        if volumes.is_empty() {
            return None;
        }
        volumes.tied_to(|node_id| {
            let slot = self.cluster.position(node_id);
            let slot = slot.and_then(|position| self.cluster.slot(position));
            slot.is_some_and(|slot| slot.of_group > 0)
        })
    }

    /// Tells whether somebody else's writing keeps the allocation off a node.
    pub(crate) fn volume_is_taken(&self, position: usize) -> bool {
        let volumes = &self.requirements.volumes;
        if volumes.is_empty() {
            return false;
        }
        let cluster = &self.cluster;
        let node = cluster.table.node(position);
        node.is_some_and(|node| {
            volumes.is_taken(&node.value, self.name_index, || {
                let replacing = self.replacing;
                let there = VolumeWrites::on_node(cluster.snapshot, node.value.id, replacing);
                there.chain(cluster.writes(position).cloned())
            })
        })
    }

    /// Tells whether a node has the volumes that the allocation alone asks for, and claims let it go
    /// there.
    fn has_own_volumes(&self, position: usize) -> bool {
        if let Some(tied_to) = &self.tied_to
            && !tied_to.contains(&self.cluster.table.row(position).id)
        {
            return false;
        }
        let Some(name_index) = self.own_volumes_of else {
            return true;
        };
        let node = self.cluster.table.node(position);
        node.is_some_and(|node| self.requirements.volumes.pass(&node.value, name_index))
    }

    /// Returns the position of the `distinct_property` that keeps one more off a node.
    pub(super) fn limit_at(&self, position: usize) -> Option<usize> {
        let table = self.cluster.table;
        let mut limits = self.properties.iter();
        limits.position(|limit| !limit.admits(table, position))
    }

    /// Returns why the job's other allocations keep one more off a node.
    pub(crate) fn ruled_out(&self, position: usize) -> Option<String> {
        if self.is_next_to_another(position) {
            return Some(placement::DistinctHosts::REASON.to_owned());
        }
        if !self.volumes_serve(position) {
            return Some(VolumeAsks::REASON.to_owned());
        }
        let limit = self.limit_at(position)?;
        Some(self.properties[limit].reason(self.cluster.table, position))
    }

    /// Returns what a node is short of for one more.
    pub(crate) fn exhausted(&self, position: usize, row: &NodeRow) -> Option<Exhausted> {
        if let Some(exhausted) = self.lacks_ports(position) {
            return Some(exhausted);
        }
        let mut after = self
            .cluster
            .used(position)
            .plus(self.requirements.resources);
        if !self.requirements.exclusive.is_empty() {
            match self.exclusive(position) {
                Ok(given) => after.cpu_mhz = after.cpu_mhz.saturating_add(given.cpu_mhz),
                Err(exhausted) => return Some(exhausted),
            }
        }
        if self.cluster.free_allocs(position) < 1 {
            return Some(Exhausted::Amount(Exhausted::MAX_ALLOCS));
        }
        after.exceeds(row.available).map(Exhausted::Amount)
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
