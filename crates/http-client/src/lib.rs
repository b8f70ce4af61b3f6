//! Client of an HTTP API at one address: an agent of Consul, a Vault.
//!
//! Reading order: [`Settings`] are address, TLS and limits, checked before the start; [`HttpClient`] sends a
//! [`Request`]; [`Target`] is its path and query, escaped; [`Token`] is a secret that no log shows;
//! [`Failure`] tells why there is no answer; [`reason`] shortens an error of the service and hides
//! secrets in it. The operations of an API and the meaning of its statuses are in the crates that use
//! this one.

mod client;
mod failure;
mod reason;
mod server;
mod settings;
mod target;
mod token;

pub use client::{Answer, Header, HttpClient, Request};
pub use failure::{Failure, Service};
pub use hyper::Method;
pub use hyper::header::HeaderMap;
pub use reason::{one_line, reason};
pub use server::Scheme;
pub use settings::{SettingProblem, Settings, Tls, check_duration};
pub use target::Target;
pub use token::Token;
