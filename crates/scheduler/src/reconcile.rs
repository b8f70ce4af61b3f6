//! Reconciliation: a job's allocations against its specification. It stops, updates and asks for
//! placements; it does not look for nodes.
//!
//! In reading order: `context` holds the inputs; `changes` the results; `classify` sorts allocations by
//! the condition of their nodes, `node_condition`; `reschedule` decides when a failed one is replaced;
//! `slots` which ones count for the group, `stops` which are too many; `spec_change` whether one can
//! take a new version while it runs; `rollout` reads the deployments; `canaries` handles canaries,
//! `names` the name indexes, `reconnect` the return of a node, `waiting` the follow-up evaluations,
//! which `delayed` makes. `reconciler` and `group` put these together for one task group, `job` for all
//! groups.

mod canaries;
pub(crate) mod changes;
pub(crate) mod classify;
pub(crate) mod context;
pub(crate) mod delayed;
pub(crate) mod group;
pub(crate) mod job;
mod names;
pub(crate) mod node_condition;
mod reconciler;
mod reconnect;
pub(crate) mod reschedule;
pub(crate) mod rollout;
mod slots;
pub(crate) mod spec_change;
mod stops;
mod waiting;
