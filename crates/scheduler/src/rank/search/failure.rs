//! Metric of a failed placement: filtered and exhausted nodes by reason and class.

use model::AllocMetric;
use placement::Exhausted;

use crate::rank::metrics::add;
use crate::rank::search::Search;

impl Search<'_, '_> {
    /// Returns the metric of a placement that no node has room for.
    pub(crate) fn failure_metric(&self) -> AllocMetric {
        let mut metric = self.screening.failure_metric();
        let mut amounts = Vec::<(&'static str, u32)>::new();
        let mut exhausted_of_kind = vec![0; self.cluster.table.kinds().len()];
        for (position, row) in self.feasible() {
            if let Some(reason) = self.ruled_out(position) {
                metric.nodes_filtered += 1;
                add(&mut metric.constraint_filtered, &reason, 1);
                continue;
            }
            metric.nodes_exhausted += 1;
            exhausted_of_kind[row.kind as usize] += 1;
            let exhausted = self.exhausted(position, row);
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
        count_by_class(self, &exhausted_of_kind, &mut metric);
        metric
    }
}

/// Counts filtered and exhausted nodes by class; nodes in scope that are not
/// exhausted were filtered, as none was found.
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
