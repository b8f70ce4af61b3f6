//! Client of Vault's HTTP API: logins with a JWT, tokens, secrets, leases.
//!
//! Reading order: [`VaultConfig`] are a node's settings; [`Client`] sends requests; [`failure`] tells from an
//! answer why a request failed, and whether a retry may help; [`secret`] and [`auth`] are the answers;
//! [`kv`] finds the path of a key-value secret; [`schedule`] decides when a token or a lease is renewed.
//! All but [`Client`] is pure: time and randomness are arguments. The crate `http_client` sends the requests.
//! Source: Vault's public API documentation.

pub mod auth;
mod client;
mod config;
pub mod failure;
pub mod kv;
pub mod schedule;
pub mod secret;

pub use auth::Auth;
pub use client::{Client, Health, Login};
pub use config::{SOURCE as CONFIG_SOURCE, VaultConfig};
pub use failure::Failure;
pub use http_client::Token;
pub use secret::Secret;
