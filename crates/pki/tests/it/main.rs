//! Certificates as a verifier sees them.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod authorities;
mod certificates;
mod fixture;
mod node_authorities;
