//! Client of Vault's HTTP API: logins with a JWT, tokens, secrets, leases.
//!
//! Reading order: [`VaultConfig`] are a node's settings; [`Client`] sends requests; [`failure`] tells from an
//! answer why a request failed, and whether a retry may help; [`secret`] and [`auth`] are the answers;
//! [`kv`] finds the path of a key-value secret; [`schedule`] decides when a token or a lease is renewed.
//! All but the client and its requests ([`Client`], `http`) is pure: time and randomness are arguments.
//! Source: Vault's public API documentation.

pub mod auth;
mod client;
mod config;
pub mod failure;
mod http;
pub mod kv;
pub mod schedule;
pub mod secret;
mod token;
mod url;

pub use auth::Auth;
pub use client::{Client, Health, Login};
pub use config::{SOURCE as CONFIG_SOURCE, VaultConfig};
pub use failure::Failure;
pub use secret::Secret;
pub use token::Token;
