//! Reads and lists: the common fields of their messages.

use crate::v1;

/// A request with options: namespace, consistency, blocking, paging.
pub trait Read: Clone {
    /// Returns the options, which are created if the request has none.
    fn options_mut(&mut self) -> &mut v1::QueryOptions;
}

/// An answer to a [`Read`].
pub trait Answer {
    /// Returns the index, the age and the token of the next page.
    fn meta(&self) -> v1::QueryMeta;
}

/// An answer with items.
pub trait List: Answer {
    type Item;

    fn items(self) -> Vec<Self::Item>;
}
