//! Diffs of jobs and their annotations, through the public API of the crate.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that panics fails the test that called it"
)]

mod annotations;
mod context;
mod edits;
mod properties;
mod support;
