//! Requests of operators to change the cluster.
//!
//! In reading order: [`change`] and [`deletion`] are the decisions that several share;
//! [`namespaces`] and [`node_pools`] are joined by jobs, [`volumes`] and [`csi`] are used by allocations;
//! [`scheduler_config`], [`evaluations`], [`keyring`], [`variables`] and their [`locks`]; [`eligibility`] and [`drain`] change a node,
//! [`node_meta`] checks metadata that the node itself keeps.

pub mod change;
pub mod csi;
pub mod deletion;
pub mod drain;
pub mod eligibility;
pub mod etcd;
pub mod evaluations;
pub mod keyring;
pub mod locks;
pub mod namespaces;
pub mod node_meta;
pub mod node_pools;
mod referenced;
pub mod scheduler_config;
pub mod variables;
pub mod volumes;
