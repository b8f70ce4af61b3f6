//! The driver `raw_exec`: plain processes of the host, without any isolation, each under its own
//! [`crate::supervisor`].
//!
//! The record of an attempt is a directory, `<state>/<alloc id>/<task>/<attempt>`, created before
//! anything runs; every process is found again from there. In reading order: [`settings`] of the
//! node, [`options`] of a job, [`link`] to a supervisor, [`tasks`] with the driver's state,
//! [`recover`] of processes after a restart of the agent, [`operations`] of the driver, [`exec`]
//! of commands beside a task, and [`shared_cores`] for tasks that share cpu.

mod exec;
mod link;
mod operations;
mod options;
mod recover;
mod settings;
mod shared_cores;
mod tasks;
#[cfg(test)]
mod tests;

pub use self::settings::{RawExecSettings, SupervisorCommand};
pub use self::tasks::RawExec;
