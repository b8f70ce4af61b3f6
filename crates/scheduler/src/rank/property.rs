//! Limits of a `distinct_property`: the use of each value, and the nodes parked until one is freed.

use placement::{DistinctProperty, Level};
use rustc_hash::FxHashMap;
use state::NodeTable;

use crate::rank::ask::JobAllocation;
use crate::rank::column::{Column, Names};
use crate::rank::score_buckets::Entry;

/// One `distinct_property` of a group.
#[derive(Clone, Debug)]
pub(crate) struct PropertyLimit<'a> {
    rule: &'a DistinctProperty,
    column: Column,
    names: Names<'a>,
    /// Value → allocations on its nodes.
    used: Vec<u32>,
    /// Value → nodes that were taken out of the buckets while it was used up.
    parked: FxHashMap<u32, Vec<Entry>>,
}

/// The number of nodes without a value.
const MISSING: u32 = u32::MAX;

impl<'a> PropertyLimit<'a> {
    /// `live` are the job's live allocations with their positions.
    pub(crate) fn new(
        rule: &'a DistinctProperty,
        table: &'a NodeTable,
        live: &[(usize, JobAllocation)],
    ) -> Self {
        let mut names = Names::default();
        let column = Column::new(table, rule.target(), |value| match value {
            Some(value) => names.number(value),
            None => MISSING,
        });
        let mut limit = Self {
            used: vec![0; names.len()],
            rule,
            column,
            names,
            parked: FxHashMap::default(),
        };
        for (position, alloc) in live {
            let is_looked_at = alloc.is_of_group || rule.level == Level::Job;
            if is_looked_at && !alloc.may_share {
                limit.add(table, *position);
            }
        }
        limit
    }

    fn value_at(&self, table: &NodeTable, position: usize) -> Option<u32> {
        let value = self.column.get(position, table.row(position));
        (value != MISSING).then_some(value)
    }

    pub(crate) fn add(&mut self, table: &NodeTable, position: usize) {
        if let Some(value) = self.value_at(table, position) {
            self.used[value as usize] += 1;
        }
    }

    /// Subtracts an allocation, and returns the nodes parked for its value.
    pub(crate) fn remove(&mut self, table: &NodeTable, position: usize) -> Vec<Entry> {
        let Some(value) = self.value_at(table, position) else {
            return Vec::new();
        };
        let used = &mut self.used[value as usize];
        *used = used.saturating_sub(1);
        self.parked.remove(&value).unwrap_or_default()
    }

    /// Tells whether the node's value is below its limit.
    pub(crate) fn admits(&self, table: &NodeTable, position: usize) -> bool {
        match (self.value_at(table, position), self.rule.allowed()) {
            (Some(value), Ok(allowed)) => self.used[value as usize] < allowed,
            _ => false,
        }
    }

    /// Parks a node until its value is freed; one without a value stays out.
    pub(crate) fn park(&mut self, table: &NodeTable, entry: Entry) {
        if let Some(value) = self.value_at(table, entry.position()) {
            self.parked.entry(value).or_default().push(entry);
        }
    }

    /// Returns the reason in metrics of a node that is not admitted.
    pub(crate) fn reason(&self, table: &NodeTable, position: usize) -> String {
        if let Err(fault) = self.rule.allowed() {
            return fault.to_owned();
        }
        match self.value_at(table, position) {
            Some(value) => {
                let used = self.used[value as usize];
                self.rule.used_up(self.names.name(value), used)
            }
            None => self.rule.missing(),
        }
    }
}
