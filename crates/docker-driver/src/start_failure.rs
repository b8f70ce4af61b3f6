//! Failures of starts.

use task_drivers::StartError;

pub(crate) fn failed(message: String, recoverable: bool) -> StartError {
    StartError::Failed {
        message,
        recoverable,
    }
}
