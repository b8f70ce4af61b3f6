//! Mutual TLS: certificates from files, reloaded without a restart, and handshakes.
//!
//! In reading order: [`Files`] names the files; [`Credentials`] are their contents, ready for
//! handshakes; [`Credentials::keep_fresh`] reloads them when they change; [`accept`] and
//! [`Connector`] make connections; [`Problem`] explains a failed one; [`Metrics`] count.
//! Roles and rights of a verified peer are not decided here.

mod accept;
mod connect;
mod credentials;
mod error;
mod files;
mod http2;
mod metrics;
mod own;
mod plaintext;
mod problem;
mod reload;
#[cfg(test)]
mod tests;

pub use accept::{HandshakeError, ServerStream, accept};
pub use connect::{ClientStream, Connector, Expect, ServerCheck};
pub use credentials::{Clients, Credentials, Verify};
pub use error::Error;
pub use files::{Files, KeyPair};
pub use metrics::Metrics;
pub use problem::Problem;
pub use rustls_pki_types::ServerName;
