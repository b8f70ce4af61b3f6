//! Tells callers of every write, from an index on, as long as the store keeps it.
//!
//! In reading order: [`mod@filter`] is what a caller wants; [`kind`] says what a write was;
//! [`mod@describe`] makes the events of one, with what [`past`] has read for it; [`stream`] is the
//! loop behind each caller.
//!
//! **Invariant**: nothing is buffered for a caller beyond a few batches and a few MiB: every stream is a watch of
//! its own at the store, which keeps the past until it is compacted away. So any gateway can go on
//! where another stopped.

pub mod describe;
pub mod filter;
pub mod kind;
pub mod past;
pub mod stream;
#[cfg(test)]
mod tests;

pub use describe::describe;
pub use filter::Filter;
pub use stream::Streams;
