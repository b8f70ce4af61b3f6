//! The JSON that `-json` prints, with the keys of Nomad's HTTP API: one file per noun.
//!
//! Keys are stable; those without a value here are left out. Durations are integer nanoseconds,
//! `CreateTime` and its like Unix nanoseconds, other points in time RFC 3339. A job itself is written by
//! the crate `job-fields`, whose types carry its keys.

pub mod alloc;
pub mod csi;
pub mod deployment;
pub mod eval;
pub mod event;
pub mod explain;
pub mod introduction;
pub mod job;
pub mod keyring;
pub mod metric;
pub mod namespace;
pub mod node;
pub mod node_pool;
pub mod operator;
pub mod plan;
pub mod revocation;
pub mod scaling;
pub mod service;
mod time;
pub mod usage;
pub mod variable;
pub mod volume;
