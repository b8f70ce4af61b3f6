//! Connections that a node opens for gateways which cannot reach it (docs/decisions/0034): the node's side.
//!
//! In reading order: [`DialOut`] awaits the requests of the gateway of the node's session; `open` opens one
//! connection, on which the node's own server then serves, as on those that it accepts. The gateway's side is the
//! crate `node-connections`.

mod dial_out;
mod metrics;
mod open;

pub use dial_out::DialOut;
pub use metrics::Metrics;
