//! Answering from the replica: how fresh, whether to wait for a change, how much of it.
//!
//! In reading order: [`freshness`] gets a snapshot that is as new as was asked for; [`blocking`]
//! waits for a result's index to pass; [`page`] orders and cuts lists; [`prefix`] finds one object
//! by the start of its id; [`view`] shows stored objects as the API has them.

pub mod blocking;
pub mod freshness;
pub mod index;
pub mod options;
pub mod page;
pub mod prefix;
pub mod view;
