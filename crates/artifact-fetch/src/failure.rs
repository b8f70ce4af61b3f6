//! Failures of a download.

/// A failed artifact. The text has no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    /// A later start of the task may succeed.
    pub recoverable: bool,
}

impl Failure {
    /// A failure that may pass, or that a change of the server's content ends.
    pub(crate) fn passing(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            recoverable: true,
        }
    }

    /// A failure that only another job or setting ends.
    pub(crate) fn lasting(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            recoverable: false,
        }
    }
}
