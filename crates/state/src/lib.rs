//! The replica: every stored object, with the indexes that services query.
//!
//! Pure: watched changes go in, one revision at a time ([`State::apply`]); [`Snapshot`]s come out,
//! immutable and O(1). In reading order: [`key`] and [`entity`] are names and objects of the store,
//! with [`Write`], the conditional write that deciders return and the crate `store` performs;
//! [`change`] is the input; `id_set` has the members of an index; [`view`] joins the two sides of an
//! allocation; [`usage`], [`ports`] and [`dedicated`] sum up the resources of a node's allocations, and
//! [`priorities`] splits that by priority; [`node_table`] holds the scheduler's rows of nodes; [`volumes`]
//! finds registered volumes by name; `tables` keeps all of it in step; [`snapshot`] is the reading side.
//! `covered`, [`job_records`], `introductions`, `keyring`, `processes`, `revocations`, `services`, `staged`
//! and [`summary`] add queries to it, `after` the state after writes; [`job_versions`] prunes the versions of
//! a job.
//!
//! Derived state is derived in this crate and nowhere else: job status and summary, a deployment's
//! counts and a node's usage are folds over the stored objects.
//!
//! The crate `store` feeds the replica from etcd and knows the layout of keys and values there.

mod after;
pub mod change;
mod covered;
mod csi;
pub mod dedicated;
pub mod entity;
mod id_set;
mod introductions;
pub mod job_records;
pub mod job_versions;
pub mod key;
mod keyring;
mod map;
pub mod node_table;
pub mod ports;
pub mod priorities;
mod processes;
mod revocations;
mod scheduling;
mod services;
pub mod snapshot;
mod staged;
pub mod summary;
mod tables;
#[cfg(test)]
mod tests;
pub mod usage;
pub mod view;
pub mod volumes;

pub use change::Change;
pub use dedicated::DedicatedUse;
pub use entity::{Entity, PlanCommit, PlanPiece, Progress, Write, set_trace_parent};
pub use job_records::ChildrenSummary;
pub use key::{Key, Table};
pub use node_table::{NodeKind, NodeRow, NodeTable};
pub use ports::{AddressPorts, NO_PORTS, PortUse};
pub use priorities::Share;
pub use services::ShownService;
pub use snapshot::{Snapshot, State};
pub use summary::{GroupSummary, JobStatus};
pub use usage::NodeUsage;
pub use view::AllocView;
pub use volumes::NamedVolumes;
