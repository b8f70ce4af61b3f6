//! The decision on a request that writes at most one object.

use state::Write;

/// One write, or none because the object is as requested already.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Unchanged { modify_index: u64 },
    Write(Box<Write>),
}
