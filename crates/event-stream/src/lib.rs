//! Events of committed writes, as the event stream of the API sends them.
//!
//! In reading order: [`mod@filter`] selects events for a caller; [`kind`] names the type of a write;
//! [`mod@describe`] returns the events of one write, from the write, the replica, and past state
//! that [`past`] reads from the store; [`bookmark`] decides when a quiet stream shows its progress.

pub mod bookmark;
pub mod describe;
pub mod filter;
pub mod kind;
pub mod past;
#[cfg(test)]
mod tests;
mod written;

pub use bookmark::{Bookmark, BookmarkAction, BookmarkEvent};
pub use describe::describe;
pub use filter::Filter;
pub use written::PastObjects;
