//! The decisions on requests that change an object, or find it as requested already.

use model::Indexed;
use state::Write;

/// One write, or none because the object is as requested already.
#[derive(Clone, Debug, PartialEq)]
pub enum OneWrite {
    Unchanged { modify_index: u64 },
    Write(Box<Write>),
}

/// The registration of a volume, of whatever kind.
#[derive(Clone, Debug, PartialEq)]
pub enum VolumeRegistration<V> {
    /// It is as requested already.
    Unchanged(Box<Indexed<V>>),
    Write {
        volume: Box<V>,
        writes: Vec<Write>,
    },
}

#[cfg(test)]
impl OneWrite {
    /// Returns the writes of the transaction: one or none.
    pub(crate) fn writes(self) -> Vec<Write> {
        match self {
            Self::Unchanged { .. } => Vec::new(),
            Self::Write(write) => vec![*write],
        }
    }
}
