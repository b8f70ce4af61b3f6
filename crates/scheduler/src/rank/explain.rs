//! What people are told of a search: why a node was chosen, or why none was.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{AllocMetric, NodeId, NodeScore};
use placement::{Exhausted, Requirements};
use state::NodeTable;

use crate::rank::score::{Parts, thousandths};
use crate::rank::search::Search;

/// How many nodes are named beside the one that was chosen: five in all, as many as Nomad names.
pub(crate) const RUNNERS_UP_MAX: usize = 4;

/// What was found out before the first allocation of a group was placed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groundwork {
    /// By position: whether nodes of the kind are in scope and can run the group.
    suits: Vec<bool>,
    in_scope: u32,
    /// The job's.
    node_pool: Arc<str>,
    filtered: u32,
    reasons: BTreeMap<String, u32>,
    /// How many suitable nodes had no room from the start.
    pub(crate) exhausted: u32,
    /// Datacenter → ready nodes.
    available: BTreeMap<String, u32>,
}

impl Groundwork {
    /// Asks one node of each kind for all of them.
    pub(crate) fn new(table: &NodeTable, requirements: &Requirements) -> Self {
        let mut groundwork = Self {
            node_pool: requirements.scope.node_pool().into(),
            ..Self::default()
        };
        for kind in table.kinds() {
            let Some(kind) = kind else {
                groundwork.suits.push(false);
                continue;
            };
            let (node, nodes) = (&kind.example.value, kind.schedulable_count);
            if nodes == 0 || !requirements.scope.contains(node) {
                groundwork.suits.push(false);
                continue;
            }
            groundwork.in_scope += nodes;
            add(&mut groundwork.available, &node.datacenter, nodes);
            let answer = requirements.check_shared(node);
            groundwork.suits.push(answer.is_ok());
            if let Err(infeasible) = answer {
                groundwork.filter(infeasible.reason(), nodes);
            }
        }
        groundwork
    }

    pub(crate) fn suits(&self, kind: u32) -> bool {
        self.suits.get(kind as usize).copied().unwrap_or(false)
    }

    /// Counts nodes that cannot run the group for `reason`.
    pub(crate) fn filter(&mut self, reason: &str, nodes: u32) {
        self.filtered += nodes;
        add(&mut self.reasons, reason, nodes);
    }

    /// Returns what a placed allocation remembers of the search.
    pub(crate) fn placed(&self, parts: &Parts) -> Box<AllocMetric> {
        Box::new(AllocMetric {
            nodes_evaluated: self.in_scope,
            nodes_filtered: self.filtered,
            nodes_exhausted: self.exhausted,
            nodes_in_pool: self.in_scope,
            score_per_mille: thousandths(parts.score()),
            score_parts: Some(parts.in_thousandths()),
            ..AllocMetric::default()
        })
    }

    /// Returns why none of the nodes that `search` looked at takes one more.
    pub(crate) fn failed(&self, search: &Search<'_, '_>) -> AllocMetric {
        let mut metric = AllocMetric {
            nodes_evaluated: self.in_scope,
            nodes_filtered: self.filtered,
            nodes_in_pool: self.in_scope,
            node_pool: Arc::clone(&self.node_pool),
            constraint_filtered: self.reasons.clone(),
            nodes_available: self.available.clone(),
            ..AllocMetric::default()
        };
        let mut amounts = Vec::<(&'static str, u32)>::new();
        let mut exhausted_of_kind = vec![0; search.cluster.table.kinds().len()];
        for (position, row) in search.feasible() {
            if let Some(reason) = search.ruled_out(position) {
                metric.nodes_filtered += 1;
                add(&mut metric.constraint_filtered, &reason, 1);
                continue;
            }
            metric.nodes_exhausted += 1;
            exhausted_of_kind[row.kind as usize] += 1;
            let exhausted = search.exhausted(position, row);
            match exhausted.unwrap_or(Exhausted::DynamicPorts) {
                Exhausted::Amount(dimension) => {
                    match amounts.iter_mut().find(|(known, _)| *known == dimension) {
                        Some((_, nodes)) => *nodes += 1,
                        None => amounts.push((dimension, 1)),
                    }
                }
                other => add(&mut metric.dimension_exhausted, &other.to_string(), 1),
            }
        }
        for (dimension, nodes) in amounts {
            add(&mut metric.dimension_exhausted, dimension, nodes);
        }
        count_by_class(search, &exhausted_of_kind, &mut metric);
        metric
    }
}

/// Counts filtered and exhausted nodes by class; all nodes in scope that are not exhausted were
/// filtered, since none was found.
fn count_by_class(search: &Search<'_, '_>, exhausted_of_kind: &[u32], metric: &mut AllocMetric) {
    let kinds = search.cluster.table.kinds().zip(exhausted_of_kind);
    for (kind, exhausted) in kinds.filter_map(|(kind, exhausted)| Some((kind?, *exhausted))) {
        let node = &kind.example.value;
        let scope = &search.requirements.scope;
        if node.node_class.is_empty() || kind.schedulable_count == 0 || !scope.contains(node) {
            continue;
        }
        let filtered = kind.schedulable_count.saturating_sub(exhausted);
        for (counts, nodes) in [
            (&mut metric.class_filtered, filtered),
            (&mut metric.class_exhausted, exhausted),
        ] {
            if nodes > 0 {
                add(counts, &node.node_class, nodes);
            }
        }
    }
}

/// Returns the score of a node that was not chosen.
pub(crate) fn node_score(node_id: NodeId, parts: &Parts) -> NodeScore {
    NodeScore {
        node_id,
        per_mille: thousandths(parts.score()),
        parts: parts.in_thousandths(),
    }
}

fn add(counts: &mut BTreeMap<String, u32>, key: &str, more: u32) {
    match counts.get_mut(key) {
        Some(count) => *count += more,
        None => drop(counts.insert(key.to_owned(), more)),
    }
}
