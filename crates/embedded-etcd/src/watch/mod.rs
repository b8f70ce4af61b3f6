//! Watches: who is told of which change, and in which order.
//!
//! The hub pushes each published revision to the outboxes of the watches it concerns. An outbox is
//! bounded: a watch whose reader is slow is marked as lagging, costs the writer nothing more, and
//! catches up from the history when its reader has made room. So a lagging watch can be compacted
//! away, as in etcd.
//!
//! Pure: an outbox wakes its reader through [`std::task::Waker`], and time is an argument.

mod hub;
mod message;
mod outbox;
mod subscriptions;
mod watcher;

pub use self::{
    hub::{StreamId, WatchHub},
    message::Message,
    outbox::Outbox,
    watcher::{Request, WatchError},
};

#[cfg(test)]
mod tests;
