//! The client against a stand-in for Vault.

mod client;
mod faults;
mod support;
mod tls;
