//! Facts true of every snapshot and of every history, whatever was killed in between.
//!
//! Pure, and written without a look at how the services keep them: sums are taken anew from the
//! allocations, not from the replica's running totals. In reading order: [`violation`] is what is
//! found, [`snapshot`] looks at one state, [`transition`] at one change, [`history`] at a whole
//! history revision by revision, [`at_rest`] at a suite that nobody disturbs any more, [`indexes`]
//! at what can be looked up.
//!
//! [`check_history`] is the one part that is not pure: it feeds [`History`] from etcd's watch, from
//! the first revision on.

pub mod at_rest;
mod exclusive;
pub mod history;
pub mod indexes;
mod pace;
pub mod replay;
pub mod snapshot;
#[cfg(test)]
mod tests;
pub mod transition;
pub mod violation;
mod volumes;

pub use at_rest::check_at_rest;
pub use history::History;
pub use indexes::check_indexes;
pub use replay::{Report, check_history};
pub use snapshot::check_snapshot;
pub use violation::{Fact, Violation};
