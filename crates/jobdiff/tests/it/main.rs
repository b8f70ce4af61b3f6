//! Differences of jobs, as whoever asks for them sees them.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that panics fails the test that called it"
)]

mod annotations;
mod context;
mod edits;
mod properties;
mod support;
