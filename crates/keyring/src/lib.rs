//! The keys of a gateway: those that sign identity tokens, those that seal them, and variables, which are
//! sealed with the same.
//!
//! In reading order: [`Keyring`] is the state of all of it. [`signer`] reads the file of key-encryption keys
//! and has the active signing key, [`maintenance`] is the loop that rotates keys, and `requests` answers
//! operators. [`variables`] reads, changes and seals variables, and [`variable_requests`] answers requests on
//! them. The crate `workload-identity` decides about rotation, the crate `admission` about requests.

mod gateway_keys;
pub mod maintenance;
mod metrics;
mod requests;
pub mod signer;
pub mod variable_requests;
pub mod variables;

pub use gateway_keys::Keyring;
pub use metrics::Metrics;
pub use signer::KeyringFile;
