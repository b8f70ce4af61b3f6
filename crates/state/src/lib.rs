//! The replica: every object of the store, with the indexes that services look things up by.
//!
//! Pure: watched changes go in, a revision at a time ([`State::apply`]); [`Snapshot`]s come out,
//! immutable and O(1). In reading order: [`change`] is what goes in, [`view`] joins the two sides
//! of an allocation, [`usage`] is what a node's allocations hold, [`ports`] which of its ports,
//! [`node_table`] is the scheduler's view of the nodes,
//! [`priorities`] is what they could give up for somebody more important, [`volumes`] finds
//! registered volumes by name, [`launches`] is what stands beside jobs, and their children,
//! `tables` keeps it all in step,
//! [`snapshot`] is the reading side.
//!
//! Derived state is derived here and nowhere else: job status and summary, a deployment's counts,
//! a node's usage are folds over the stored objects.
//!
//! The crate `store` feeds it from etcd and knows what keys look like there.

pub mod change;
pub mod held;
pub mod launches;
mod looked;
pub mod node_table;
pub mod ports;
pub mod priorities;
mod scheduling;
pub mod snapshot;
pub mod staged;
pub mod summary;
mod tables;
#[cfg(test)]
mod tests;
pub mod usage;
pub mod view;
pub mod volumes;

pub use change::{Change, Entity, Key, Table};
pub use held::Held;
pub use launches::ChildrenSummary;
pub use node_table::{NodeKind, NodeRow, NodeTable};
pub use ports::{AddressPorts, NO_PORTS, PortUse};
pub use priorities::Share;
pub use snapshot::{Snapshot, State};
pub use staged::{PlanCommit, PlanPiece, Progress, StagedOp};
pub use summary::{GroupSummary, JobStatus};
pub use usage::NodeUsage;
pub use view::AllocView;
pub use volumes::NamedVolumes;
