//! Lists and look-ups of an API: pages of ordered items, objects found by the start of an id, whole ids,
//! and the times of blocking queries.
//!
//! [`prefix`] finds one of many ids, [`find`] does so for each noun of a snapshot.

pub mod blocking;
pub mod find;
mod ids;
mod namespaces;
pub mod page;
pub mod prefix;

pub use ids::{whole_id, whole_ids};
pub use namespaces::Namespaces;
pub use page::{Page, PageKey};
pub use prefix::{NotFound, UuidPrefix};
