//! Decides what happens to one allocation on its node: when each task starts, whether it starts
//! again, in which order tasks are killed, when the allocation is healthy, and when it has ended.
//!
//! Pure: time and randomness come in as arguments, effects go out as values, so a test or the
//! simulator can replay any history. The loop around it is `services/client-node/src/runner.rs`,
//! which stores [`AllocState`] before it performs what a step returned; so a node's agent can be
//! killed at any instruction and go on from there ([`AllocRunner::restore`]).
//!
//! In reading order: [`time`] is the two clocks a machine is told; [`spec`] is what of a job this
//! crate needs; [`event`] and [`effect`] are the machine's whole outside; [`alloc`] is the machine
//! of an allocation and owns one machine per task ([`task`]); [`restart`] is the restart policy,
//! [`gates`] the order of starting, [`kill`] the order of killing, [`health`] the verdict for a
//! deployment, [`task_event`] the words that users read.
//!
//! Source: Nomad 2.0 behaviour, apart from what the comments name.

pub mod alloc;
pub mod effect;
pub mod event;
mod gates;
mod health;
mod kill;
mod restart;
pub mod spec;
mod task;
mod task_event;
pub mod time;

#[cfg(test)]
mod tests;

pub use alloc::{AllocRunner, AllocState, Boot};
pub use effect::Effect;
pub use event::{Event, RestartScope, StartFailure, StartStep};
pub use spec::{AllocSpec, HealthSpec, Limits, Role, TaskSpec};
pub use time::{Now, Uptime};
