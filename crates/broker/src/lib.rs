//! The evaluation broker: which evaluation is delivered next, and to which worker.
//!
//! Pure: time comes in as an argument, randomness as a seed, effects go out as values, so that a
//! test or the simulator can replay any history. The loop around it is
//! `services/eval-broker/src/run.rs`.
//!
//! The broker holds every open evaluation, each in exactly one state ([`State`]), until the store
//! shows it closed. So a worker's ack alone ends nothing. The written outcome does, seen on the same
//! change feed that brings the job's next evaluation.
//!
//! In reading order: [`event`] and [`effect`] are the interface; [`config`] has the timeouts;
//! `machine` is the state machine; `queues` holds deliverable evaluations, `sessions` the workers'
//! streams, `blocked` the evaluations that wait for capacity, [`free_capacity`] tells which of them a gain may
//! help; [`facts`] reads the replica; [`outcome`] makes the writes.
//!
//! Source: Nomad's public behaviour: at-least-once delivery by priority, one evaluation of a job
//! at a time, answered by token with ack or nack.

mod blocked;
pub mod config;
pub mod effect;
mod entry;
pub mod event;
pub mod facts;
pub mod free_capacity;
mod machine;
pub mod outcome;
mod queues;
mod sessions;
pub mod token;

#[cfg(test)]
mod tests;

pub use config::Config;
pub use effect::{Delivery, Effect, NotOutstanding, ReturnReason};
pub use entry::State;
pub use event::{BlockedOn, Event, Fact, JobTypes, OpenEval, RequestId, SessionId};
pub use free_capacity::{Asks, FreeCapacity};
pub use machine::{Broker, Stats};
pub use token::Token;
