//! Connections that nodes open for gateways which cannot reach them (docs/decisions/0034): the gateway's side.
//!
//! In reading order: [`dialing`] decides whether a gateway dials a node or uses the node's own connections;
//! [`pairings`] pairs a caller that waits with the connection that a node opens. Both are pure.
//! [`NodeConnections`] holds the streams of nodes that await connections here: [`await_stream`] is such a
//! stream, `open` asks a node for a connection, and `accept` takes the one that it opens. [`relay`] asks other
//! gateways, [`relay_service`] answers them. The node's side is the crate `dial-out`; the crate `node-calls`
//! makes the calls.

mod accept;
pub mod await_stream;
pub mod dialing;
mod metrics;
mod node_connections;
mod open;
pub mod pairings;
pub mod relay;
mod relay_queue;
pub mod relay_service;

pub use dialing::Route;
pub use metrics::Metrics;
pub use node_connections::{NoConnection, NodeConnections};
