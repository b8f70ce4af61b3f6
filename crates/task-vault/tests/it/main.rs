//! A task's token and secrets against a stand-in for Vault, in real time with short lives.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attributes;
mod keeper;
mod secrets;
mod support;
