//! etcd's v3 KV, Txn, Watch and Lease API in process, in memory or on disk.
//!
//! For `kafila dev`, which needs no installation, for tests, and for the simulator. Services use it
//! through the same `etcd-client` as a real etcd and cannot tell the difference.
//!
//! In reading order:
//! - [`record`] and [`key_range`]: the nouns; [`config`] and [`error`].
//! - [`mvcc`]: every version of every key, compaction included; [`txn`]: validation and execution of txns;
//!   [`lease`]; [`watch`]; [`machine`] puts these together. All of it pure: time is an argument, and
//!   nothing waits.
//! - [`storage`]: persistence, and the format on disk.
//! - `run`: the loop around the machine; `grpc`: etcd's services around the loop; [`EmbeddedEtcd`]
//!   holds it all.

mod compactor;
pub mod config;
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
