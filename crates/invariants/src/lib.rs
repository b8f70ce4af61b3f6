//! Invariants of every snapshot and of every history, with any processes killed meanwhile.
//!
//! Pure, and independent of the services' own code: sums are recomputed from the allocations, not
//! taken from the replica's running totals. In reading order: [`violation`] is a finding;
//! [`snapshot`] checks one state, [`transition`] one change, [`history`] a whole history revision by
//! revision, [`at_rest`] a suite without further changes or faults, [`indexes`] the replica's indexes.
//!
//! The crate `store-test-kit` feeds [`History`] from etcd's watch, starting at the first revision.

mod addresses;
pub mod at_rest;
mod dedicated;
pub mod history;
pub mod indexes;
mod pace;
pub mod snapshot;
#[cfg(test)]
mod tests;
pub mod transition;
pub mod violation;
mod volumes;

pub use at_rest::check_at_rest;
pub use history::History;
pub use indexes::check_indexes;
pub use snapshot::check_snapshot;
pub use violation::{Fact, Violation};
