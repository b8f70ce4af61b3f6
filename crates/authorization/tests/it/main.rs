//! The table of rights against the protos and the documentation, and decisions about calls.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod decisions;
mod table;
