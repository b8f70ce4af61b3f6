//! Kinds of refusals: each API maps a kind to a code of its own.

use crate::FieldErrors;

/// The reason why a request is refused, coarse enough for a status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Fields of the request are invalid.
    Invalid,
    /// The object does not exist.
    NotFound,
    /// Another object has the name already.
    AlreadyExists,
    /// The object is not at the index or version that the caller requires.
    Outdated,
    /// The caller is not allowed to do this, or the operation is disabled.
    Denied,
    /// The state of the object does not allow it.
    Precondition,
    /// Too much work is queued; the same request succeeds later.
    Overloaded,
    /// A machine that the request needs is away; the same request succeeds once it is back.
    Unavailable,
}

/// A refused request. Its text names the field or object, and the fix.
pub trait Refusal: std::error::Error + Send + Sync + 'static {
    fn kind(&self) -> Kind;

    /// Returns the invalid fields of a [`Kind::Invalid`] refusal.
    fn field_errors(&self) -> Option<&FieldErrors> {
        None
    }
}

impl Refusal for FieldErrors {
    fn kind(&self) -> Kind {
        Kind::Invalid
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        Some(self)
    }
}
