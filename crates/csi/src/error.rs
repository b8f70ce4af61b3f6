//! A failed call of a plugin.

use tonic::{Code, Status};

/// A plugin refuses a call, or does not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{method}: {message} ({code:?})")]
pub struct Error {
    pub method: &'static str,
    pub code: Code,
    /// The plugin's own words.
    pub message: String,
}

impl Error {
    pub(crate) fn new(method: &'static str, status: &Status) -> Self {
        let message = match status.message() {
            "" => "the plugin gives no reason",
            text => text,
        };
        Self {
            method,
            code: status.code(),
            message: message.to_owned(),
        }
    }

    /// The plugin answers that it is not ready.
    pub fn not_ready() -> Self {
        Self {
            method: "Probe",
            code: Code::FailedPrecondition,
            message: "the plugin is not ready".to_owned(),
        }
    }

    /// Returns the status to pass on.
    pub fn to_status(&self) -> Status {
        Status::new(self.code, self.message.clone())
    }

    /// Tells whether the plugin does not know the volume, so that there is nothing to undo.
    pub fn is_not_found(&self) -> bool {
        self.code == Code::NotFound
    }
}
