//! The agent of one machine: pulls the machine's allocations, runs their tasks, reports on them.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `identity` and `fingerprint` say who and
//! what the machine is; `session` speaks to the gateways (register, heartbeat, watch, report)
//! through `gateways`, which fails over between them; `assignment` reads what they assign, `agent`
//! compares it with what is here and keeps a `runner` per allocation, the loop around the machine
//! in `crates/lifecycle`, which decides; `alloc_dir` builds directories, `local_state` is what
//! survives the agent, `reporter` batches what servers are told, `gc` makes room, `log_reader` and
//! `grpc` serve tasks' output.
//!
//! **Invariant**: a task never depends on the agent's life. Whatever kills the agent, the tasks go
//! on under their supervisors (`crates/task-drivers`), and the next run of the agent finds them.
//! **Invariant**: nothing is stopped or collected because of a revision that is not newer than what
//! the agent has acted on.

mod agent;
mod alloc_dir;
pub mod app;
mod assignment;
mod clock;
pub mod config;
mod context;
pub mod devices;
mod error;
mod fingerprint;
mod gateways;
mod gc;
mod grpc;
mod identity;
mod local_state;
mod log_reader;
pub mod metrics;
mod reporter;
mod runner;
mod session;

pub use app::{App, Light};
pub use config::Config;
pub use error::Error;
pub use local_state::Memory;

/// The name that it is configured and measured under.
pub const SERVICE: &str = "client-node";
/// The hidden subcommand of the `kafila` binary that runs [`task_drivers::supervisor::main`].
pub const SUPERVISOR_SUBCOMMAND: &str = "task-supervisor";
