//! Services of a node, kept registered at its Consul agent.
//!
//! Runners of allocations put the services that are to be registered ([`Services::put`]); a loop
//! ([`Services::run`]) compares them with the agent's own and repairs the difference: after each change, every 30
//! seconds, and as soon as a check is missing. [`plan`] decides and is pure. The states of the checks, which
//! Consul runs, come back by [`Services::states`].
//!
//! The loop is the only writer of these services at the agent, and levels, not edges, are compared: a
//! request without an answer, a restarted agent of Consul or of Kafila need no case of their own.

pub mod plan;
mod services;

pub use services::{CheckReport, Services, States};
