//! Search of nodes for one task group, one allocation after the other.
//!
//! In reading order: this file screens the kinds of nodes and sorts nodes into score buckets; `room`
//! checks one node, `volumes` its volumes; `find` takes the best node out of the buckets; `preempt`
//! finds the best full node; `changes` applies placements and stops; `failure` reports why no node has
//! room.

mod changes;
mod combination;
mod failure;
mod find;
mod node_check;
mod preempt;
mod volumes;

use std::collections::BTreeSet;

use model::{Algorithm, AllocId, NodeId};
use placement::{Level, PortAsk, Requirements};
use state::NodeRow;

use crate::cluster::Cluster;
use crate::rank::affinity::Affinities;
use crate::rank::ask::Ask;
use crate::rank::metrics::Screening;
use crate::rank::preemption_candidates::PreemptionCandidates;
use crate::rank::property::PropertyLimit;
use crate::rank::score::{FitCache, Parts};
use crate::rank::score_buckets::{BucketRef, Entry, ScoreBuckets};
use crate::rank::spread::{SpreadUse, total};

/// The search for one group.
pub(crate) struct Search<'a, 'c> {
    pub(crate) cluster: &'c mut Cluster<'a>,
    pub(crate) requirements: &'a Requirements,
    count: u32,
    pub(super) algorithm: Algorithm,
    affinities: Affinities,
    pub(super) spreads: Vec<SpreadUse>,
    properties: Vec<PropertyLimit<'a>>,
    buckets: ScoreBuckets,
    /// By the position of the node.
    pub(super) bucket_refs: Vec<BucketRef>,
    pub(super) screening: Screening,
    /// Full nodes; `None`: no preemption.
    pub(super) preemption: Option<PreemptionCandidates>,
    has_static_ports: bool,
    /// The name index of the allocation, if it asks for volumes of its own.
    own_volumes_of: Option<u32>,
    /// The name index of the allocation.
    name_index: u32,
    /// The allocation that it replaces, which ends before it starts.
    pub(crate) replacing: Option<AllocId>,
    /// The nodes that volume claims tie it to; `None`: no claims.
    tied_to: Option<BTreeSet<NodeId>>,
    pub(super) has_runners_up: bool,
}

impl<'a, 'c> Search<'a, 'c> {
    /// Screens every kind of node, and scores every node of suitable kinds.
    pub(crate) fn new(cluster: &'c mut Cluster<'a>, ask: Ask<'a>) -> Self {
        let table = cluster.table;
        cluster.forget_job();
        let mut live = Vec::with_capacity(ask.live.len());
        let hosts = ask.requirements.distinct_hosts;
        for alloc in ask.live {
            let Some(position) = table.position(alloc.node_id) else {
                continue;
            };
            live.push((position, alloc));
            let slot = cluster.slot_mut(position);
            slot.of_job += 1;
            slot.of_group += u32::from(alloc.is_of_group);
            let is_looked_at =
                hosts.is_some_and(|hosts| hosts.level == Level::Job || alloc.is_of_group);
            slot.of_other_generation += u32::from(is_looked_at && alloc.may_share);
        }
        let of_group = || {
            let own = live.iter();
            let own = own.filter(|(_, alloc)| alloc.is_of_group && !alloc.is_alternative);
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
        if ask.requirements.dedicated.has_device_affinities() {
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
            buckets: ScoreBuckets::new(ask.preferences.spreads.len(), scorers),
            bucket_refs: Vec::new(),
            screening: Screening::new(table, ask.requirements),
            has_static_ports: ask.requirements.ports.iter().any(is_static),
            own_volumes_of: None,
            name_index: 0,
            replacing: None,
            tied_to: None,
            preemption: ask.preemptor.map(PreemptionCandidates::new),
            has_runners_up: false,
        };
        search.ask_nodes();
        search
    }

    fn ask_nodes(&mut self) {
        let table = self.cluster.table;
        let combinations = self.combinations_of_kinds();
        let asks_nodes = self.requirements.asks_nodes();
        let mut entries = Vec::<Vec<Entry>>::new();
        // The number of nodes of a bucket if all have the same: an estimate that saves reallocations.
        // Where nodes differ one by one, there may be a bucket for each.
        let expected = match &combinations {
            Some(_) => table.row_count() / self.buckets.combination_count().max(1) + 1,
            None => 1,
        };
        self.bucket_refs.reserve(table.row_count());
        let mut fits = FitCache::default();
        let mut node = 0_u32;
        for row in table.chunks().flatten() {
            let position = node as usize;
            node += 1;
            if !row.is_schedulable || !self.screening.suits(row.kind) {
                self.bucket_refs.push(BucketRef::NONE);
                continue;
            }
            if asks_nodes && !self.ask_node(position) {
                self.bucket_refs.push(BucketRef::NONE);
                continue;
            }
            let combination = match &combinations {
                Some(of_kinds) => of_kinds[row.kind as usize],
                None => self.combination_at(position),
            };
            let bucket = ScoreBuckets::bucket(combination, false);
            self.bucket_refs.push(BucketRef { bucket, changes: 0 });
            // As in the table; nodes that differ from it are rescored below.
            let Some(room) = self.room_without(position, row, row.used, row.free_allocs) else {
                self.screening.exhausted += 1;
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
            let bucket = bucket as usize;
            if entries.len() <= bucket {
                entries.resize_with(bucket + 1, Vec::new);
            }
            if entries[bucket].capacity() == 0 {
                entries[bucket].reserve(expected);
            }
            entries[bucket].push(self.entry(row.id, node - 1, &parts, 0));
        }
        self.buckets.fill(entries);
        for position in self.cluster.touched().collect::<Vec<_>>() {
            self.rescore(position);
        }
    }

    /// Checks requirements that differ between nodes of a kind, and counts the reason of a failure.
    fn ask_node(&mut self, position: usize) -> bool {
        let Some(node) = self.cluster.table.node(position) else {
            return false;
        };
        match self.requirements.check_own(&node.value) {
            Ok(()) => true,
            Err(infeasible) => {
                self.screening.filter(infeasible.reason(), 1);
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
            if u32::try_from(kind).is_ok_and(|kind| self.screening.suits(kind)) {
                for (key, spread) in keys.iter_mut().zip(&self.spreads) {
                    *key = spread.key_of_kind(kind)?;
                }
                let spreads = &self.spreads;
                combination = self.buckets.combination(&keys, |keys| total(spreads, keys));
            }
            combinations.push(combination);
        }
        Some(combinations)
    }

    /// Returns the feasible nodes, with or without room.
    pub(crate) fn feasible(&self) -> impl Iterator<Item = (usize, &NodeRow)> {
        let rows = self.cluster.table.chunks().flatten();
        let bucket_refs = rows.zip(&self.bucket_refs).enumerate();
        bucket_refs
            .filter(|(_, (_, bucket_ref))| bucket_ref.has_bucket())
            .map(|(position, (row, _))| (position, row))
    }
}

fn is_static(ask: &PortAsk) -> bool {
    ask.static_port.is_some()
}
