//! Blocking queries: a request that waits until its data has changed since an index.
//!
//! Source: the page on blocking queries of Consul's documentation: an index that goes back, as after a
//! restored snapshot, starts over at 0, and one of 0 is an error that counts as 1.

use std::time::Duration;

/// The longest wait. Consul adds up to a sixteenth, so that the answers of a cluster spread out.
pub const WAIT: Duration = Duration::from_secs(60);

/// The wait of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Answer at once.
    #[default]
    None,
    /// Answer once the data is newer than this index, or after [`WAIT`].
    Index(u64),
}

impl Wait {
    /// The wait for a change after an answer with `index`; `before`: the wait that the answer is for.
    pub fn after(before: Self, index: u64) -> Self {
        match before {
            Self::Index(known) if index < known => Self::Index(0),
            _ => Self::Index(index.max(1)),
        }
    }
}

/// Data with its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T> {
    pub data: T,
    /// The header `X-Consul-Index`; 0: the answer has none.
    pub index: u64,
}

impl<T> Found<T> {
    /// Replaces the data.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Found<U> {
        Found {
            data: of(self.data),
            index: self.index,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_goes_back_starts_over() {
        assert_eq!(Wait::after(Wait::None, 7), Wait::Index(7));
        assert_eq!(Wait::after(Wait::Index(7), 9), Wait::Index(9));
        assert_eq!(Wait::after(Wait::Index(7), 7), Wait::Index(7));
        assert_eq!(Wait::after(Wait::Index(7), 3), Wait::Index(0));
        // An index of 0 would be no wait at all: a loop without a pause.
        assert_eq!(Wait::after(Wait::Index(0), 0), Wait::Index(1));
    }
}
