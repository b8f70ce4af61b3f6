//! Client of Consul's HTTP API: services and checks of an agent, catalog, key-value store, logins.
//!
//! Reading order: [`ConsulConfig`] are a node's settings; [`Client`] sends requests; [`agent`] are services and
//! checks as an agent registers and lists them; [`catalog`] and [`kv`] are the answers to look-ups; [`blocking`]
//! are queries that wait for a change; [`failure`] tells why a request failed, and whether a retry may help.
//! All but [`Client`] is pure; the crate `http_client` sends its requests.
//! Source: Consul's public API documentation.

pub mod acl;
pub mod agent;
pub mod blocking;
pub mod catalog;
mod client;
mod config;
pub mod failure;
pub mod kv;

pub use acl::AclToken;
pub use blocking::{Found, Wait};
pub use client::{Client, Login, Scope};
pub use config::{ConsulConfig, SOURCE as CONFIG_SOURCE};
pub use failure::Failure;
pub use http_client::Token;
