//! What becomes of an operator's request to change how the cluster works: refused, or these writes.
//!
//! Pure, as `admission` is.

pub mod drain;
pub mod eligibility;
pub mod evaluations;
pub mod namespaces;
pub mod node_pools;
pub mod scheduler_config;
pub mod volumes;
