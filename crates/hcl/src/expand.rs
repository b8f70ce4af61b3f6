//! Blocks read by their schema: every attribute evaluated and in its type, every block unfolded.
//!
//! The result has the shape and the keys of the HTTP API's JSON, so that HCL and JSON files meet in
//! one place. Unknown and unsupported names are reported at their place, never skipped silently.

mod block;
mod config;
mod convert;
mod dynamic;
mod expander;
mod unknown;

pub(crate) use self::expander::Expander;
