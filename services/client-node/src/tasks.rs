//! Runners: one tokio task per allocation, around its lifecycle machine.
//!
//! In reading order: [`handle`] is a runner from outside; [`runner`] its state; [`run`] its loop;
//! [`perform`] performs effects; [`attempt`] starts, finds and awaits a task; [`leftovers`] removes
//! the records of obsolete attempts.

mod attempt;
pub(crate) mod handle;
pub(crate) mod leftovers;
mod perform;
pub(crate) mod run;
pub(crate) mod runner;
#[cfg(test)]
mod tests;
