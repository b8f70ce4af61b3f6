//! Linearizability checker: whether a concurrent history is equivalent to a sequential one.
//!
//! Clients record the times of each call and of its answer. A history is linearizable when every
//! operation can be given one instant between the two, so that the answers are those of a single
//! thread that executes the operations in that order. [`check`] searches such an order: Wing and
//! Gong's algorithm with Lowe's cache of tried states, as in the porcupine checker.
//!
//! Pure. In reading order: [`model`] is the sequential specification, [`history`] the observed
//! operations, [`search`] finds the order or shows the longest prefix of one.

pub mod history;
pub mod model;
pub mod search;
#[cfg(test)]
mod tests;

pub use history::Operation;
pub use model::Model;
pub use search::{Verdict, check};
