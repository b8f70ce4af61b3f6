//! Why an allocation was placed where it is, or could not be placed.

use model::AllocMetric;

use crate::v1;

impl From<v1::AllocMetric> for AllocMetric {
    fn from(wire: v1::AllocMetric) -> Self {
        Self {
            nodes_evaluated: wire.nodes_evaluated,
            nodes_filtered: wire.nodes_filtered,
            nodes_exhausted: wire.nodes_exhausted,
            nodes_in_pool: wire.nodes_in_pool,
            constraint_filtered: wire.constraint_filtered.into_iter().collect(),
            dimension_exhausted: wire.dimension_exhausted.into_iter().collect(),
            nodes_available: wire.nodes_available.into_iter().collect(),
            score_per_mille: wire.score_per_mille,
            coalesced_failures: wire.coalesced_failures,
        }
    }
}

impl From<&AllocMetric> for v1::AllocMetric {
    fn from(metric: &AllocMetric) -> Self {
        Self {
            nodes_evaluated: metric.nodes_evaluated,
            nodes_filtered: metric.nodes_filtered,
            nodes_exhausted: metric.nodes_exhausted,
            nodes_in_pool: metric.nodes_in_pool,
            constraint_filtered: metric.constraint_filtered.clone().into_iter().collect(),
            dimension_exhausted: metric.dimension_exhausted.clone().into_iter().collect(),
            nodes_available: metric.nodes_available.clone().into_iter().collect(),
            score_per_mille: metric.score_per_mille,
            coalesced_failures: metric.coalesced_failures,
        }
    }
}
