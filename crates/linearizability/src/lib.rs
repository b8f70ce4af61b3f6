//! Whether a concurrent history could have happened one operation at a time.
//!
//! Clients record when they asked and when they were answered. A history is linearizable when every
//! operation can be given one instant between the two, so that the answers are those of a single
//! thread that does one operation after the other. [`check`] looks for such an order: Wing and
//! Gong's search with Lowe's memory of what was tried, as the porcupine checker has it.
//!
//! Pure. In reading order: [`model`] is what a system may do, [`history`] what was seen of it,
//! [`search`] finds the order, or shows how far it came.

pub mod history;
pub mod model;
pub mod search;
#[cfg(test)]
mod tests;

pub use history::Operation;
pub use model::Model;
pub use search::{Verdict, check};
