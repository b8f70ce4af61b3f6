//! The driver `java`: programs of a Java virtual machine, isolated as tasks of [`crate::exec`].
//!
//! In reading order: [`settings`] of the node, [`options`] of a job and the command line that they make,
//! [`version`] of the machine, [`program`] that is looked up on the node, [`driver`] with the operations.

mod driver;
mod options;
mod program;
mod settings;
mod version;

pub use self::driver::Java;
pub use self::settings::{JavaConfig, SOURCE};
