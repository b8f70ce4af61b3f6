//! Monitors of evaluations with their deployments, and of drains.
//!
//! In reading order: [`machine`] is the state machine, without I/O; [`question`] has its requests
//! and answers, [`mod@line`] its output, [`evaluation`] and [`deployment`] its two stages.
//! [`reminder`] decides when a silent wait is explained, [`wait_reason`] how. [`screen`]
//! shows lines, and progress in place on a terminal; [`follow`] calls the gateway. [`mod@drain`]
//! monitors the drain of a node.

mod deployment;
mod drain;
mod evaluation;
mod follow;
mod line;
mod machine;
mod question;
mod reminder;
mod screen;
#[cfg(test)]
mod tests;
mod wait_reason;

pub(crate) use drain::DrainFollow;
pub(crate) use follow::{Follow, Subject, of_deployment};
pub(crate) use machine::Options;
pub(crate) use question::Goal;
pub(crate) use screen::{Screen, labelled};
