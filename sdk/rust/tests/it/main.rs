//! The client against gateways with scripted answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calls;
mod gateway;
mod mixed_versions;
mod readme;
mod streams;
