//! Streams of committed writes, from an index on, for as long as the store keeps them.
//!
//! The crate `event_stream` describes and filters the events of a write; [`stream`] is the task
//! behind each caller, and [`slots`] limits the callers.
//!
//! **Invariant**: at most a few batches and a few MiB are buffered for a caller. Every stream is a
//! watch of its own at the store, which keeps the past until compaction, so a caller can resume its
//! stream at any gateway.

pub mod slots;
pub mod stream;
