//! The driver `qemu`: virtual machines, whose emulator is isolated as tasks of [`crate::exec`].
//!
//! In reading order: [`settings`] of the node, [`options`] of a job, [`image`] with the rule for the
//! machine's disk, [`args`] with the rule for further arguments, [`command_line`] of the emulator,
//! [`monitor`] that asks a machine to shut down, [`driver`] with the operations.

mod args;
mod command_line;
mod driver;
mod image;
mod monitor;
mod options;
mod settings;

pub use self::driver::Qemu;
pub use self::settings::{QemuConfig, SOURCE};
