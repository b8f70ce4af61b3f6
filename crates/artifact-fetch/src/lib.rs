//! Artifacts of a node's tasks: downloaded by a sandboxed helper process, cached, put into a task's
//! directory.
//!
//! In reading order: [`ArtifactConfig`] has the settings; [`Artifacts`] is the node's downloads, with
//! single flight and retries; `cache` keeps downloaded files; `process` runs the helper, whose protocol is
//! `wire`; [`helper`] is the helper's side: it restricts itself, then downloads or unpacks; `install` moves
//! the result to its destination. What a source means and which entries of an archive are acceptable is
//! decided in `crates/artifact`.
//!
//! **Invariant**: content from the network is read by the helper alone, and the agent writes below a task's
//! directory without following links.

mod beneath;
mod cache;
pub mod config;
mod digests;
mod failure;
mod fetcher;
pub mod helper;
mod install;
mod key;
mod metrics;
mod process;
mod request;
mod retry;
mod wire;
mod workspace;

pub use config::ArtifactConfig;
pub use digests::sha256_of;
pub use failure::Failure;
pub use fetcher::{Artifacts, Destination, Settings};
pub use install::Form;
pub use metrics::Metrics;
pub use process::HelperCommand;
pub use request::ArtifactRequest;
