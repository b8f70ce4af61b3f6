//! Tests that need a whole process: signals, and the global subscriber of logs and traces.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod backpressure;
mod signals;
mod traces;
mod transport;
