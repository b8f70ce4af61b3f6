//! Why an allocation was placed where it is, or could not be placed.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct AllocMetric<'a> {
    nodes_evaluated: u32,
    nodes_filtered: u32,
    nodes_in_pool: u32,
    nodes_available: BTreeMap<&'a str, u32>,
    constraint_filtered: BTreeMap<&'a str, u32>,
    nodes_exhausted: u32,
    dimension_exhausted: BTreeMap<&'a str, u32>,
    coalesced_failures: u32,
}

impl<'a> From<&'a v1::AllocMetric> for AllocMetric<'a> {
    fn from(metric: &'a v1::AllocMetric) -> Self {
        Self {
            nodes_evaluated: metric.nodes_evaluated,
            nodes_filtered: metric.nodes_filtered,
            nodes_in_pool: metric.nodes_in_pool,
            nodes_available: counts(&metric.nodes_available),
            constraint_filtered: counts(&metric.constraint_filtered),
            nodes_exhausted: metric.nodes_exhausted,
            dimension_exhausted: counts(&metric.dimension_exhausted),
            coalesced_failures: metric.coalesced_failures,
        }
    }
}

/// Returns the counts in the order of their keys, so that the output does not change by itself.
pub(super) fn counts<'a, Map>(map: &'a Map) -> BTreeMap<&'a str, u32>
where
    &'a Map: IntoIterator<Item = (&'a String, &'a u32)>,
{
    map.into_iter()
        .map(|(key, count)| (key.as_str(), *count))
        .collect()
}
