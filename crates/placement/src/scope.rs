//! Scope of a job: its node pool and its datacenters.

use model::glob::glob_matches;
use model::{Job, Node};

/// The node pool and datacenters of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Empty or `all`: every pool.
    node_pool: String,
    datacenters: Vec<String>,
}

impl Scope {
    pub fn new(job: &Job) -> Self {
        Self {
            node_pool: job.node_pool.clone(),
            datacenters: job.datacenters.clone(),
        }
    }

    /// Returns the job's pool, as it names it.
    pub fn node_pool(&self) -> &str {
        &self.node_pool
    }

    pub fn contains(&self, node: &Node) -> bool {
        self.contains_pool(node) && self.contains_datacenter(node)
    }

    pub fn contains_pool(&self, node: &Node) -> bool {
        self.node_pool.is_empty() || node.is_in_pool(&self.node_pool)
    }

    pub fn contains_datacenter(&self, node: &Node) -> bool {
        self.datacenters
            .iter()
            .any(|glob| glob_matches(glob, &node.datacenter))
    }
}
