//! The client against a stand-in for Vault.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;
mod faults;
mod support;
mod tls;
