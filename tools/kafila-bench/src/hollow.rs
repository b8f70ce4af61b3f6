//! Hollow nodes: thousands of nodes in one process, over the real protocol of nodes, without
//! supervisors and without state on disk.
//!
//! [`script`] is the course of a group's tasks, read from its job; [`node`] decides what a node runs and
//! reports, [`heartbeat_silence`]
//! whether it was silent; [`registry`] knows what runs where and finds violations; all four are pure. [`wire`]
//! translates messages, and [`fleet`] makes the calls.

pub(crate) mod fleet;
mod heartbeat_silence;
pub(crate) mod node;
pub(crate) mod registry;
pub(crate) mod script;
mod wire;
