//! Calls of a node to the gateways: channels, failover, causes of failures, and retries.
//!
//! In reading order: [`gateways`] calls the gateway that the crate `node_session` chooses, [`failure`]
//! reads the causes of failed calls, [`retry`] is the backoff, `tls_failure` explains what TLS
//! prevented. The consequences of a failure are decided by `node_session`.

pub mod failure;
pub mod gateways;
pub mod retry;
mod tls_failure;

pub use failure::cause;
pub use gateways::{Gateways, naming};
pub use retry::Retry;
