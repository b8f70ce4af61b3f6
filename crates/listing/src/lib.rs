//! Lists and look-ups of an API: pages of ordered items, objects found by the start of an id, whole ids,
//! and the times of blocking queries.

pub mod blocking;
mod ids;
pub mod page;
pub mod prefix;

pub use ids::{whole_id, whole_ids};
pub use page::{Page, PageKey};
pub use prefix::{NotFound, UuidPrefix};
