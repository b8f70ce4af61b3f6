//! The fence of a leader's writes: they fail once its term is over.

use state::Key;

/// One term of one service's leader: its election key, as created at one revision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    pub service: String,
    /// The revision that made it leader; higher in each later term.
    pub create_revision: u64,
}

impl Fence {
    pub fn key(&self) -> Key {
        Key::Election(self.service.clone())
    }
}
