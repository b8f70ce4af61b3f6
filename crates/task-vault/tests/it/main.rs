//! A task's token and secrets against a stand-in for Vault, in real time with short lives.

mod keeper;
mod probe;
mod secrets;
mod support;
