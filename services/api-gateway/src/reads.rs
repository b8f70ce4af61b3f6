//! Reads from the replica: options, freshness, waiting for a change.
//!
//! In reading order: [`options`] checks the options of a read; [`blocking`] waits until a result's
//! index has passed, woken by [`table_changes`]; [`index`] is the index of a result.

pub mod blocking;
pub mod index;
pub mod options;
pub mod table_changes;
