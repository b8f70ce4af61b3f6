//! What takes a whole process: signals, and the one subscriber that logs and traces.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod signals;
mod traces;
