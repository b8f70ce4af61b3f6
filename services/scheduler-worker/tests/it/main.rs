//! The service between a scripted broker and a scripted plan-applier.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails has failed its test"
)]

mod fakes;
mod suite;
mod working;
