//! Start modes of a supervisor.

/// The task's situation when its supervisor starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The supervisor starts the task.
    Start,
    /// The task runs already and has lost its supervisor.
    Adopt,
}

/// The flag for [`Mode::Adopt`].
pub(crate) const ADOPT_FLAG: &str = "--adopt";
