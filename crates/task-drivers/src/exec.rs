//! The driver `exec`: processes of the host's programs, isolated from the host and each other.
//!
//! A task is started and found again as one of [`crate::raw_exec`], by the same supervisors; it has
//! namespaces, a root, a user and capabilities of its own. In reading order: [`settings`] of the
//! node, [`options`] of a job, [`capabilities`] that it gets, [`driver`] with the operations. What the
//! supervisor does with them is in [`crate::supervisor`].

mod capabilities;
mod driver;
mod options;
mod settings;

pub use self::driver::Exec;
pub(crate) use self::driver::IsolationDefaults;
pub(crate) use self::options::Options;
pub(crate) use self::settings::wrong_path;
pub use self::settings::{DEFAULT_CAPS, ExecConfig, SOURCE};
