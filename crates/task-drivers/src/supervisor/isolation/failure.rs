//! Errors that name the step that failed.

use std::io;

/// Returns `error` with `what` before its text, of the same kind.
pub(super) fn because(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
