//! Placement metrics: the nodes that a scheduler looked at, and their scores.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::NodeId;

/// Placement metrics: the reasons for a placement, or for a failed one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AllocMetric {
    #[serde(rename = "ev")]
    pub nodes_evaluated: u32,
    #[serde(rename = "fi", skip_serializing_if = "is_zero")]
    pub nodes_filtered: u32,
    #[serde(rename = "ex", skip_serializing_if = "is_zero")]
    pub nodes_exhausted: u32,
    /// Nodes in the job's pool and datacenters.
    #[serde(rename = "pool", skip_serializing_if = "is_zero")]
    pub nodes_in_pool: u32,
    /// The job's node pool, in metrics of failed placements; empty in placed allocations, which are
    /// stored a thousand times as often: reads take it from the job's version.
    #[serde(rename = "np", skip_serializing_if = "str::is_empty")]
    pub node_pool: Arc<str>,
    /// Constraint → nodes that failed it, as in `${attr.kernel.name} = linux`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub constraint_filtered: BTreeMap<String, u32>,
    /// Resource → nodes with too little of it, as in `cpu`, `memory`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dimension_exhausted: BTreeMap<String, u32>,
    /// Node class → filtered nodes; nodes without a class are left out.
    #[serde(rename = "cf", skip_serializing_if = "BTreeMap::is_empty")]
    pub class_filtered: BTreeMap<String, u32>,
    /// Node class → exhausted nodes; nodes without a class are left out.
    #[serde(rename = "ce", skip_serializing_if = "BTreeMap::is_empty")]
    pub class_exhausted: BTreeMap<String, u32>,
    /// Task → resources that all unplaced allocations together need for it.
    #[serde(rename = "re", skip_serializing_if = "BTreeMap::is_empty")]
    pub resources_exhausted: BTreeMap<String, ExhaustedResources>,
    /// Datacenter → ready nodes in it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes_available: BTreeMap<String, u32>,
    /// The chosen node's score in thousandths.
    #[serde(rename = "s", skip_serializing_if = "is_level")]
    pub score_per_mille: i32,
    /// Parts of the chosen node's score.
    #[serde(rename = "p", skip_serializing_if = "Option::is_none")]
    pub score_parts: Option<ScoreParts>,
    /// The next best nodes, best first; kept for the first placement of each group in a plan.
    #[serde(rename = "ru", skip_serializing_if = "Vec::is_empty")]
    pub runners_up: Vec<NodeScore>,
    /// Further placements of the group that were skipped after the first one failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub coalesced_failures: u32,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_level(score: &i32) -> bool {
    *score == 0
}

/// Resources that a task needs and that some node had too little of; 0: no node had too little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExhaustedResources {
    #[serde(rename = "cpu", skip_serializing_if = "is_nothing")]
    pub cpu_mhz: u64,
    #[serde(rename = "mem", skip_serializing_if = "is_nothing")]
    pub memory_mib: u64,
}

fn is_nothing(amount: &u64) -> bool {
    *amount == 0
}

/// Parts of a node's score, in thousandths; `None`: the scorer does not apply.
///
/// The score is the mean of the parts, or their sum where that is below 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScoreParts {
    /// 0 to 1000: utilization of the node with the allocation, or free room with the spread algorithm.
    #[serde(rename = "b")]
    pub fit: i32,
    /// Below 0: other allocations of the group are on the node.
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<i32>,
    /// −1000: a predecessor failed on the node.
    #[serde(rename = "r", skip_serializing_if = "Option::is_none")]
    pub reschedule_penalty: Option<i32>,
    /// −1000 to 1000: weights of the matching affinities.
    #[serde(rename = "n", skip_serializing_if = "Option::is_none")]
    pub affinity: Option<i32>,
    /// −1000 to 1000: distance of the node's values from their target share.
    #[serde(rename = "w", skip_serializing_if = "Option::is_none")]
    pub spread: Option<i32>,
    /// −1000 to 1000: weights of the matching affinities of device requests.
    #[serde(rename = "d", skip_serializing_if = "Option::is_none")]
    pub devices: Option<i32>,
    /// 0 to 1000: higher for fewer victims with lower priorities.
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    pub preemption: Option<i32>,
}

impl ScoreParts {
    /// Returns the applicable scorers with their values, under Nomad's names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, i32)> {
        [
            ("binpack", Some(self.fit)),
            ("devices", self.devices),
            ("job-anti-affinity", self.anti_affinity),
            ("node-reschedule-penalty", self.reschedule_penalty),
            ("node-affinity", self.affinity),
            ("allocation-spread", self.spread),
            ("preemption", self.preemption),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Score of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeScore {
    #[serde(rename = "id")]
    pub node_id: NodeId,
    /// The score, in thousandths.
    #[serde(rename = "s")]
    pub per_mille: i32,
    #[serde(flatten)]
    pub parts: ScoreParts,
}
