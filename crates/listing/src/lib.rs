//! Lists and look-ups of an API: pages of ordered items, and objects found by the start of an id.

pub mod page;
pub mod prefix;

pub use page::{Page, PageKey};
pub use prefix::{NotFound, UuidPrefix};
