//! Decides which evaluation is delivered next, and to which waiting worker.
//!
//! Pure: time comes in as an argument, randomness as a seed, effects go out as values, so that a
//! test or the simulator can replay any history. The loop around it is
//! `services/eval-broker/src/run.rs`.
//!
//! What is open in the store is held here, each evaluation in exactly one state ([`State`]); it
//! leaves only when the store says that it is closed. So a worker's ack alone ends nothing: the
//! outcome that the worker had written is what ends it, seen on the same feed that brings the next
//! evaluation of the job.
//!
//! In reading order: [`event`] and [`effect`] are the whole outside; [`config`] has the times;
//! `broker` is the machine; `queues` holds what can be delivered, `sessions` who takes it,
//! `blocked` what waits for capacity; [`facts`] reads the replica; [`outcome`] makes the values
//! that are written.
//!
//! Source: Nomad's public behaviour: at-least-once delivery by priority, one evaluation of a job
//! at a time, answered by token with ack or nack.

mod blocked;
mod broker;
pub mod config;
pub mod effect;
mod entry;
pub mod event;
pub mod facts;
pub mod outcome;
mod queues;
mod sessions;
pub mod token;

#[cfg(test)]
mod tests;

pub use broker::{Broker, Stats};
pub use config::Config;
pub use effect::{Delivery, Effect, Refusal, ReturnReason};
pub use entry::State;
pub use event::{BlockedOn, Event, Fact, JobTypes, OpenEval, RequestId, SessionId};
pub use token::Token;
