//! Tallies: counts of allocations and children that were garbage collected.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Number of a job's allocations and children that ended and were garbage collected: the value of
/// `job-tally/<namespace>/<id>`. With it, a summary's counts of ended allocations never go down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTally {
    /// The create index of the job, which tells its incarnations apart.
    #[serde(rename = "jci")]
    pub job_create_index: u64,
    /// Task group → counts.
    pub groups: BTreeMap<String, Ended>,
    /// Number of garbage collected children.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub children: u32,
}

/// Number of ended allocations, by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ended {
    #[serde(skip_serializing_if = "is_zero")]
    pub complete: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl JobTally {
    /// Adds the counts of `more`, which belongs to the same incarnation.
    pub fn add(&mut self, more: &Self) {
        for (group, ended) in &more.groups {
            let sum = self.groups.entry(group.clone()).or_default();
            sum.complete = sum.complete.saturating_add(ended.complete);
            sum.failed = sum.failed.saturating_add(ended.failed);
            sum.lost = sum.lost.saturating_add(ended.lost);
        }
        self.children = self.children.saturating_add(more.children);
    }
}
