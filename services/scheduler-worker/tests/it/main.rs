//! The service between a broker and a plan-applier that do what a test says.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails has failed its test"
)]

mod fakes;
mod suite;
mod working;
