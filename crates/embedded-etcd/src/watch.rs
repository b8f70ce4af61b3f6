//! Watches: delivery of changes, in order, to the watches that match.
//!
//! The hub pushes each published revision to the outboxes of the matching watches. An outbox is
//! bounded: a watch with a slow reader is marked as lagging, costs the writer nothing more, and
//! catches up from the history when the reader has made room. So compaction can overtake a lagging
//! watch, as in etcd.
//!
//! Pure: an outbox wakes its reader through [`std::task::Waker`], and time is an argument.

mod hub;
mod id;
mod message;
mod outbox;
mod subscriptions;
mod watcher;

pub use self::{
    hub::WatchHub,
    id::StreamId,
    message::Message,
    outbox::Outbox,
    watcher::{Request, WatchError},
};

#[cfg(test)]
mod tests;
