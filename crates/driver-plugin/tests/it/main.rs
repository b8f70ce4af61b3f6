//! Tests against the stand-in (`crates/driver-plugin-test-kit`) in another process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod dying;
mod fixture;
mod launching;
mod restarting;
mod running;
