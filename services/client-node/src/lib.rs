//! Agent of one machine: receives the machine's allocations, runs their tasks, reports on them.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `crates/node-introduction` gets and renews the
//! certificate; `crates/fingerprint` makes the node's record; `crates/local-state` keeps the identity and
//! the state that survives the agent; `session` talks to the gateways (register, heartbeat, watch, report)
//! with failover; `allocations` applies assignments and keeps a runner per allocation, of
//! `crates/task-runner`; `grpc` serves tasks' output and files, restarts, signals, states of checks,
//! measurements and `node_meta`.
//!
//! **Invariant**: a task never depends on the agent's life. When the agent dies, its tasks go on under
//! their supervisors (`crates/task-drivers`), and the next run of the agent finds them.
//! **Invariant**: no allocation is stopped or collected by an update that is not newer than the
//! revision that the agent has acted on.

mod allocations;
pub mod app;
pub mod config;
mod context;
mod error;
mod grpc;
pub mod metrics;
mod node_meta;
mod session;

pub use app::{App, SharedParts};
pub use config::Config;
pub use error::Error;
pub use local_state::Memory;

/// The service's name in configuration and metrics.
pub const SERVICE: &str = "client-node";
/// The hidden subcommand of the `kafila` binary that runs [`task_drivers::supervisor::main`].
pub const SUPERVISOR_SUBCOMMAND: &str = "task-supervisor";
/// The hidden subcommand of the `kafila` binary that runs [`artifact_fetch::helper::main`].
pub const ARTIFACT_SUBCOMMAND: &str = "artifact-helper";
