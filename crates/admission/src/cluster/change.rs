//! The decision on a request that writes at most one object.

use state::Write;

/// One write, or none because the object is as requested already.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Unchanged { modify_index: u64 },
    Write(Box<Write>),
}

#[cfg(test)]
impl Change {
    /// Returns the writes of the transaction: one or none.
    pub(crate) fn writes(self) -> Vec<Write> {
        match self {
            Self::Unchanged { .. } => Vec::new(),
            Self::Write(write) => vec![*write],
        }
    }
}
