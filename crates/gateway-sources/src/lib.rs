//! Sources of a node's tasks at the gateways.
//!
//! [`GatewaySources`] calls the current gateway on behalf of tasks: `tokens` gets their identity tokens,
//! `look_ups` the data of their templates, `volumes` the volumes to mount. [`services`] subscribes to the
//! services that the node looks up. The task runner says when to call, and what follows from an answer;
//! the crate `gateway_calls` chooses the gateway.

mod look_ups;
pub mod services;
mod sources;
mod tokens;
mod volumes;

pub use services::Subscription;
pub use sources::GatewaySources;
