//! etcd through its client: what keys and values look like, conditional transactions, fences,
//! elections, and the replica that every service reads from.
//!
//! One backend, the etcd client; `kafila dev` and tests give it an embedded server that speaks the
//! same API. In reading order: [`keys`] and [`codec`] say how an object is stored; [`client`] is
//! the connection and its reads, `members` says which of etcd's it leads to; [`txn`] builds a transaction in which every write has a compare,
//! [`writer`] commits it and [`resolve`] finds out about commits whose answer never came;
//! [`replica`] lists and watches everything into [`state::Snapshot`]s; [`election`] makes one
//! process the leader, with a fence that its writes carry; [`history`] replays what was committed,
//! [`tail`] follows it.
//!
//! **Invariant**: no write without a compare. There is no put here, only `create`, `update` and
//! `delete`, each of which names what it expects to find.
//!
//! **Invariant**: an answer that never came is [`Error::Unknown`], never a failure.

pub mod client;
pub mod codec;
pub mod election;
pub mod error;
pub mod history;
pub mod keys;
mod members;
pub mod replica;
pub mod resolve;
mod retry;
mod revision;
mod staged;
pub mod tail;
pub mod txn;
mod watch;
pub mod writer;

pub use client::{Client, ClientOptions, Stored};
pub use codec::Value;
pub use election::{Election, ElectionMetrics, ElectionOptions, Fence, Leadership, run_elected};
pub use error::{ETCD_FLAGS, Error};
pub use keys::Keyspace;
pub use replica::{Delta, Replica, ReplicaMetrics, ReplicaOptions, Subscription, WaitError};
pub use resolve::Resolution;
pub use tail::{Tail, Told, Written};
pub use txn::{Limits, Room, Txn, TxnError};
pub use writer::{Commit, Conflict, FailedCompare, Writer};
