//! Background decisions about the cluster: node liveness, drains, garbage, periodic launches.
//!
//! Pure: time comes in as an argument, transitions go out as values. The loop around it is
//! `services/cluster-controller/src/run.rs`.
//!
//! Heartbeats are never stored: gateways report them, this crate keeps the timers, and only a change
//! of a node's status is written, together with an evaluation of every affected job.
//! The timers can be lost: a new leader restarts them with a grace period, and reads the rest from
//! the replica.
//!
//! In reading order: [`config`] has the timeouts; `liveness` is the state machine; `node_status` is
//! the status that a node should have; `stall_adjusted_clock` leaves out the time in which the controller could
//! not hear nodes, `streams` watches the gateways, `mass_failure` delays the rest when too many nodes
//! stop sending heartbeats at once, and `pace` limits the writes; [`evals`] and [`transition`] make the writes.
//!
//! [`drain`], [`garbage`], [`periodic`] and [`deletions`] (deletion timeouts) are deciders of their
//! own that read the same snapshots. [`etcd`] decides on the maintenance of etcd, from the status of its
//! members.

pub mod config;
pub mod deletions;
pub mod drain;
pub mod etcd;
pub mod evals;
pub mod garbage;
mod liveness;
mod mass_failure;
mod node_status;
mod pace;
pub mod periodic;
mod stall_adjusted_clock;
mod streams;
pub mod transition;

#[cfg(test)]
mod tests;

pub use config::Config;
pub use liveness::{ControllerHealth, Effect, Event, Liveness, Stats};
pub use streams::StreamId;
pub use transition::Transition;
