//! Decides which nodes are alive, what follows for the jobs on them, and what may be forgotten.
//!
//! Pure: time comes in as an argument, transitions go out as values. The loop around it is
//! `services/cluster-controller/src/run.rs`.
//!
//! Heartbeats are never stored: gateways tell who was heard of, timers are kept here, and only a
//! change of a node's status is written, together with an evaluation of every job that it touches.
//! Nothing kept here matters for longer than a few seconds: a new leader starts every node's timer
//! anew, with some grace, and reads the rest off the replica.
//!
//! In reading order: [`config`] has the times; `liveness` is the machine; `judge` says what a
//! node's status should be; `damper` holds back when too many fall silent at once; [`evals`] and
//! [`outcome`] make the values that are written.
//!
//! [`drain`] decides who leaves a draining node next, [`garbage`] what nobody needs any more,
//! [`periodic`] when periodic jobs are launched, [`deletions`] which deletions were begun and are not
//! finished any more: each a machine of its own that reads the same
//! snapshots.

pub mod config;
mod damper;
pub mod deletions;
pub mod drain;
pub mod evals;
pub mod garbage;
mod judge;
mod liveness;
pub mod outcome;
pub mod periodic;

#[cfg(test)]
mod tests;

pub use config::Config;
pub use evals::NodeEvals;
pub use liveness::{Effect, Event, Liveness, Stats, Transition};
