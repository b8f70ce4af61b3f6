//! What an operator may choose about scheduling.

use std::collections::BTreeMap;

/// Which of two feasible nodes is better, everything else being equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// The fuller one: nodes fill up one after the other, and whole nodes stay free.
    #[default]
    Binpack,
    /// The emptier one: every node keeps room to spare.
    Spread,
}

/// The scheduler's configuration. Source: Nomad's public defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub algorithm: Algorithm,
    /// Node pool → what holds for its jobs instead.
    pub pool_algorithms: BTreeMap<String, Algorithm>,
}

impl Config {
    /// Returns the algorithm for jobs of `node_pool`.
    pub fn algorithm(&self, node_pool: &str) -> Algorithm {
        let of_pool = self.pool_algorithms.get(node_pool);
        of_pool.copied().unwrap_or(self.algorithm)
    }
}
