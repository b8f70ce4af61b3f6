//! Deletion in two steps: a mark, then the deletion.
//!
//! **Invariant**: a transaction that begins to use an object compares the object's key. So the mark
//! makes every transaction fail that was decided before it, and every later one is refused. A
//! snapshot that shows the mark therefore shows all users of the object.

use state::Write;

/// The next step of a deletion.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion<R> {
    /// Marks the object. The deletion is decided on again once this is committed.
    Mark(Write),
    Delete(Vec<Write>),
    /// Refused after the mark was written; this removes the mark.
    TakeBack {
        write: Write,
        refusal: R,
    },
}

/// Decides on the next step for an object; `in_use` refuses its deletion, and `mark` returns the
/// write that sets or removes the mark.
///
/// # Errors
/// The object is in use and not marked.
pub(super) fn next_step<R>(
    is_marked: bool,
    in_use: Option<R>,
    mark: impl FnOnce(bool) -> Write,
    delete: impl FnOnce() -> Vec<Write>,
) -> Result<Deletion<R>, R> {
    match in_use {
        None if is_marked => Ok(Deletion::Delete(delete())),
        None => Ok(Deletion::Mark(mark(true))),
        Some(refusal) if is_marked => Ok(Deletion::TakeBack {
            write: mark(false),
            refusal,
        }),
        Some(refusal) => Err(refusal),
    }
}
