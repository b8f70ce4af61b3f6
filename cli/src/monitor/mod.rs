//! Watches an evaluation, and the deployment it belongs to, until both have ended.
//!
//! In reading order: [`machine`] decides what to ask next and what to print, without I/O;
//! [`mod@line`] is what it prints; [`evaluation`] and [`deployment`] are its two halves; [`screen`]
//! shows lines, and progress in place on a terminal; [`follow`] asks the gateway and carries out.
//! [`mod@drain`] watches a node's drain instead, in the same words.

mod deployment;
mod drain;
mod evaluation;
mod follow;
mod line;
mod machine;
mod screen;
#[cfg(test)]
mod tests;

pub(crate) use drain::DrainFollow;
pub(crate) use follow::{Follow, Subject, of_deployment};
pub(crate) use machine::{Goal, Options};
pub(crate) use screen::{Screen, labelled};
