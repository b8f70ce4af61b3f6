//! Tests against the stand-in (`crates/driver-plugin-test-kit`) in another process.

mod dying;
mod fixture;
mod launching;
mod restarting;
mod running;
