//! etcd's v3 KV, Txn, Watch and Lease API in process, in memory or on disk.
//!
//! For `kafila dev`, which needs nothing installed; for tests; and for the simulator. Services speak
//! to it through the same `etcd-client` as to an etcd and cannot tell the difference.
//!
//! In reading order:
//! - [`record`] and [`key_range`]: the nouns; [`config`] and [`error`].
//! - [`mvcc`]: every version of every key, compaction included; [`txn`]: what a txn is and does;
//!   [`lease`]; [`watch`]; [`machine`] puts these together. All of it pure: time is an argument, and
//!   nothing waits.
//! - [`storage`]: what survives the process, and how it looks on disk.
//! - `run`: the loop around the machine; `grpc`: etcd's services around the loop; [`EmbeddedEtcd`]
//!   holds it all.

mod compactor;
pub mod config;
mod crc32c;
pub mod error;
#[doc(hidden)]
pub mod fuzzing;
mod grpc;
pub mod key_range;
pub mod lease;
pub mod machine;
pub mod mvcc;
pub mod record;
mod run;
mod server;
pub mod storage;
pub mod txn;
pub mod watch;

pub use self::{
    config::{AutoCompaction, Config, Durability, Storage},
    error::{ApiError, Error},
    server::EmbeddedEtcd,
    storage::Journal,
};

/// Keeps the example in the README compiling.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
