//! Metrics of placements: screening of nodes by kind, and scores of the nodes compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{AllocMetric, NodeId, NodeScore};
use placement::Requirements;
use state::NodeTable;

use crate::rank::score::{Parts, thousandths};

/// The maximum number of runners-up in a metric: with the chosen node five, as in Nomad.
pub(crate) const RUNNERS_UP_MAX: usize = 4;

/// Node kinds that can run a group, and the metric of those that cannot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Screening {
    /// By position of the kind: its nodes are in scope and can run the group.
    suits: Vec<bool>,
    in_scope: u32,
    node_pool: Arc<str>,
    filtered: u32,
    reasons: BTreeMap<String, u32>,
    /// The number of suitable nodes that had no room from the start.
    pub(crate) exhausted: u32,
    /// Datacenter → ready nodes.
    available: BTreeMap<String, u32>,
}

impl Screening {
    /// Checks one node of each kind for all of them.
    pub(crate) fn new(table: &NodeTable, requirements: &Requirements) -> Self {
        let mut screening = Self {
            node_pool: requirements.scope.node_pool().into(),
            ..Self::default()
        };
        for kind in table.kinds() {
            let Some(kind) = kind else {
                screening.suits.push(false);
                continue;
            };
            let (node, nodes) = (&kind.example.value, kind.schedulable_count);
            if nodes == 0 || !requirements.scope.contains(node) {
                screening.suits.push(false);
                continue;
            }
            screening.in_scope += nodes;
            add(&mut screening.available, &node.datacenter, nodes);
            let answer = requirements.check_shared(node);
            screening.suits.push(answer.is_ok());
            if let Err(infeasible) = answer {
                screening.filter(infeasible.reason(), nodes);
            }
        }
        screening
    }

    pub(crate) fn suits(&self, kind: u32) -> bool {
        self.suits.get(kind as usize).copied().unwrap_or(false)
    }

    /// Counts nodes that are filtered for `reason`.
    pub(crate) fn filter(&mut self, reason: &str, nodes: u32) {
        self.filtered += nodes;
        add(&mut self.reasons, reason, nodes);
    }

    /// Returns the metric of a placed allocation.
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

    /// Returns the metric of a failed placement, without the nodes that were checked one by one.
    pub(crate) fn failure_metric(&self) -> AllocMetric {
        AllocMetric {
            nodes_evaluated: self.in_scope,
            nodes_filtered: self.filtered,
            nodes_in_pool: self.in_scope,
            node_pool: Arc::clone(&self.node_pool),
            constraint_filtered: self.reasons.clone(),
            nodes_available: self.available.clone(),
            ..AllocMetric::default()
        }
    }
}

/// Returns the score of a node for metrics and explanations.
pub(crate) fn node_score(node_id: NodeId, parts: &Parts) -> NodeScore {
    NodeScore {
        node_id,
        per_mille: thousandths(parts.score()),
        parts: parts.in_thousandths(),
    }
}

pub(crate) fn add(counts: &mut BTreeMap<String, u32>, key: &str, more: u32) {
    match counts.get_mut(key) {
        Some(count) => *count += more,
        None => drop(counts.insert(key.to_owned(), more)),
    }
}
