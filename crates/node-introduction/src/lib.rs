//! A node's own certificate: the first one for an introduction token, and its renewals.
//!
//! The node makes its key before the first request and keeps it: a repeated request, after a lost answer
//! or a restart, gets the same id. In reading order: [`config`] are the settings, [`first`] gets the first
//! certificate, [`renewal`] the next ones; `status` explains the failed calls of both. The files are
//! [`local_state::CertificateFiles`]. Certificates that operators make are not touched: those in
//! `tls.cert_file` without a token.

pub mod config;
mod error;
pub mod first;
mod metrics;
pub mod renewal;
mod status;

pub use config::{IntroductionConfig, Secret};
pub use error::Error;
pub use first::{Joining, prepare};
pub use metrics::Metrics;
pub use renewal::Renewal;
