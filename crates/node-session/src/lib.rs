//! Session of a node with the gateways: the order in which gateways are called, and the schedule of
//! heartbeats.
//!
//! Pure: randomness and times are arguments. The loops are `services/client-node/src/session`.
//!
//! In reading order: [`gateway_order`] chooses the gateway of a call, [`failover`] that of a heartbeat
//! that was not delivered, and [`heartbeats`] the time of the next; [`call_failure`] decides what follows
//! from a failed call; [`heartbeat_buffer`] is the gateway's side.

pub mod call_failure;
pub mod failover;
pub mod gateway_order;
pub mod heartbeat_buffer;
pub mod heartbeats;

pub use call_failure::{CallFailure, Unacknowledged};
pub use failover::Failover;
pub use gateway_order::GatewayOrder;
pub use heartbeat_buffer::HeartbeatBuffer;
pub use heartbeats::Heartbeats;
