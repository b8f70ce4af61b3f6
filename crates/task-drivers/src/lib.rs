//! The code that starts processes: what Nomad calls drivers.
//!
//! In reading order: [`driver`] is what every driver can do; [`allowance`] is what a task may use; [`dirs`] are an allocation's
//! directories, [`env`](mod@env) the variables a task sees and their interpolation, [`config`] the
//! options of a task's `config` block; [`mock_driver`] only pretends; [`raw_exec`] runs plain
//! processes, each under its own [`supervisor`], a small process that outlives the agent, owns the
//! task's logs ([`log_files`]) and remembers its end.
//!
//! When a task starts, and whether it starts again, is decided elsewhere (`crates/lifecycle`).

mod affinity;
pub mod allowance;
mod cgroup;
pub mod config;
pub mod dirs;
pub mod driver;
pub mod env;
mod globs;
pub mod log_files;
pub mod mock_driver;
mod process_id;
pub mod raw_exec;
mod sharing;
mod signals;
pub mod supervisor;

pub use allowance::Allowance;
pub use dirs::{AllocDirs, TaskDirs};
pub use driver::{
    BoxFuture, Driver, DriverError, Fingerprint, Messages, Recovery, StartError, TaskConfig, TaskId,
};
pub use env::{NodeFacts, TaskEnv, UnknownVariable};
pub use mock_driver::MockDriver;
pub use raw_exec::{RawExec, RawExecSettings, SupervisorCommand};
