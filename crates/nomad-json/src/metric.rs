//! Metrics of a placement: scores of nodes, and reasons why nodes did not fit.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AllocMetric<'a> {
    nodes_evaluated: u32,
    nodes_filtered: u32,
    nodes_in_pool: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    node_pool: &'a str,
    nodes_available: BTreeMap<&'a str, u32>,
    class_filtered: BTreeMap<&'a str, u32>,
    constraint_filtered: BTreeMap<&'a str, u32>,
    nodes_exhausted: u32,
    class_exhausted: BTreeMap<&'a str, u32>,
    dimension_exhausted: BTreeMap<&'a str, u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resources_exhausted: BTreeMap<&'a str, ExhaustedResources>,
    coalesced_failures: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    score_meta_data: Vec<NodeScore<'a>>,
}

/// A task's requests of the exhausted resources.
#[derive(Debug, Serialize)]
struct ExhaustedResources {
    #[serde(rename = "CPU")]
    cpu: u64,
    #[serde(rename = "MemoryMB")]
    memory_mb: u64,
}

/// A node's scores; better nodes come first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NodeScore<'a> {
    #[serde(rename = "NodeID")]
    node_id: &'a str,
    norm_score: f64,
    scores: BTreeMap<&'static str, f64>,
}

impl<'a> NodeScore<'a> {
    fn new(node_id: &'a str, per_mille: i32, parts: v1::ScoreParts) -> Self {
        let said = named(&parts).map(|(scorer, said)| (scorer, f64::from(said) / 1000.0));
        Self {
            node_id,
            norm_score: f64::from(per_mille) / 1000.0,
            scores: said.collect(),
        }
    }
}

impl<'a> From<&'a v1::NodeScore> for NodeScore<'a> {
    fn from(score: &'a v1::NodeScore) -> Self {
        let parts = score.parts.unwrap_or_default();
        Self::new(&score.node_id, score.score_per_mille, parts)
    }
}

/// Returns the scorers that counted with their scores, in thousandths, under Nomad's names.
pub fn named(parts: &v1::ScoreParts) -> impl Iterator<Item = (&'static str, i32)> {
    let parts = [
        ("binpack", Some(parts.fit)),
        ("devices", parts.devices),
        ("job-anti-affinity", parts.anti_affinity),
        ("node-affinity", parts.affinity),
        ("node-reschedule-penalty", parts.reschedule_penalty),
        ("allocation-spread", parts.spread),
        ("preemption", parts.preemption),
    ];
    parts
        .into_iter()
        .filter_map(|(scorer, said)| Some((scorer, said?)))
}

impl<'a> AllocMetric<'a> {
    /// Returns the metric of an allocation that was placed on `node_id`.
    pub(super) fn placed(metric: &'a v1::AllocMetric, node_id: &'a str) -> Self {
        let mut shown = Self::from(metric);
        if let Some(parts) = metric.score_parts {
            let chosen = NodeScore::new(node_id, metric.score_per_mille, parts);
            shown.score_meta_data.push(chosen);
        }
        let others = metric.runners_up.iter().map(|other| {
            let parts = other.parts.unwrap_or_default();
            NodeScore::new(&other.node_id, other.score_per_mille, parts)
        });
        shown.score_meta_data.extend(others);
        shown
    }
}

impl<'a> From<&'a v1::AllocMetric> for AllocMetric<'a> {
    fn from(metric: &'a v1::AllocMetric) -> Self {
        Self {
            nodes_evaluated: metric.nodes_evaluated,
            nodes_filtered: metric.nodes_filtered,
            nodes_in_pool: metric.nodes_in_pool,
            node_pool: &metric.node_pool,
            nodes_available: counts(&metric.nodes_available),
            class_filtered: counts(&metric.class_filtered),
            constraint_filtered: counts(&metric.constraint_filtered),
            nodes_exhausted: metric.nodes_exhausted,
            class_exhausted: counts(&metric.class_exhausted),
            resources_exhausted: metric
                .resources_exhausted
                .iter()
                .map(|(task, amounts)| {
                    let amounts = ExhaustedResources {
                        cpu: amounts.cpu_mhz,
                        memory_mb: amounts.memory_mib,
                    };
                    (task.as_str(), amounts)
                })
                .collect(),
            dimension_exhausted: counts(&metric.dimension_exhausted),
            coalesced_failures: metric.coalesced_failures,
            score_meta_data: Vec::new(),
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
