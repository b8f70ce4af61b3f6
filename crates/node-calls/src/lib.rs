//! Calls of a gateway to nodes: output of tasks, commands beside them, restarts, checks, files, signals,
//! measurements, metadata, and calls of storage plugins.
//!
//! In reading order: `node_call` connects to a node, by its address or by a connection that the node opens, and
//! names it in failures; [`logs`], [`exec`],
//! [`restart`], [`checks`] and [`requests`] pass on requests of users, [`plugin`] calls a controller plugin.
//! [`NodeCalls`] is what they share.
//! The crate `admission` decides which node to ask, and refuses.

pub mod checks;
pub mod exec;
pub mod logs;
mod metrics;
mod node_call;
mod node_calls;
pub mod plugin;
pub mod requests;
pub mod restart;

pub use metrics::Metrics;
pub use node_call::channel;
pub use node_calls::NodeCalls;
