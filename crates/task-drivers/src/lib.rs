//! Task drivers: the code that starts, finds and ends tasks.
//!
//! In reading order: [`driver`] is the interface of every driver; [`resource_limits`] of a task;
//! [`dirs`] are an allocation's paths, [`alloc_dirs`] their creation and removal, [`AttemptDirs`] the
//! directories for records of attempts; [`env`](mod@env)
//! holds a task's variables and their interpolation, [`config`] the options of its `config` block, whose
//! blocks are read by [`blocks`];
//! [`volumes`] and [`dispatch_payload`] prepare its start; [`command`] describes commands beside it;
//! [`mock_driver`] simulates tasks; [`exec`] runs isolated and [`raw_exec`] plain processes, each under
//! its own [`supervisor`], a small process that
//! outlives the agent, owns the task's logs ([`log_files`], [`log_reader`]) and records its end.
//! [`java`] and [`qemu`] are isolated processes of one [`program`] of the node; what they leave to
//! [`exec`], and that to [`raw_exec`], is in `operations_of`. [`output_copy`] is a supervisor of output alone,
//! for tasks that other programs start.
//!
//! Starts and restarts are decided elsewhere (`crates/lifecycle`).

#[macro_use]
mod operations_of;

mod affinity;
pub mod alloc_dirs;
mod attempt_dirs;
pub mod blocks;
mod cgroup;
pub mod command;
pub mod config;
pub mod core_list;
mod dedicated_cores;
pub mod dirs;
pub mod dispatch_payload;
pub mod driver;
pub mod env;
mod exec;
mod java;
pub mod log_files;
pub mod log_reader;
pub mod mock_driver;
pub mod output_copy;
mod process_id;
mod process_usage;
mod program;
mod qemu;
pub mod raw_exec;
pub mod resource_limits;
mod signals;
pub mod supervisor;
mod terminal;
mod usage;
mod user;
pub mod volumes;

pub use attempt_dirs::AttemptDirs;
pub use command::{ExecCommand, ExecInput, ExecIo, ExecOutput, TerminalSize};
pub use dirs::{AllocDirs, TaskDirs};
pub use driver::{
    BoxFuture, Driver, DriverAddress, DriverError, Fingerprint, MachineSize, Messages,
    MountSupport, NetworkAsk, NetworkSupport, Recovery, StartError, TaskConfig, TaskId, TaskMount,
    TaskNames, TaskNetwork, UserSource,
};
pub use env::{NodeFacts, TaskEnv, UnknownVariable};
pub use exec::{DEFAULT_CAPS, Exec, ExecConfig, SOURCE as EXEC_CONFIG_SOURCE};
pub use java::{Java, JavaConfig, SOURCE as JAVA_CONFIG_SOURCE};
pub use mock_driver::MockDriver;
pub use process_id::{ProcessId, boot_id, kill_session};
pub use qemu::{Qemu, QemuConfig, SOURCE as QEMU_CONFIG_SOURCE};
pub use raw_exec::{RawExec, RawExecSettings, SupervisorCommand};
pub use resource_limits::ResourceLimits;
pub use usage::Usage;
