//! Storage in etcd: key layout and encoding, conditional transactions, fences, elections, and the
//! replica that every service reads from.
//!
//! One backend, the etcd client; `kafila dev` and tests give it an embedded server that speaks the
//! same API. In reading order: [`keys`] and [`codec`] define the stored form of an object; [`client`]
//! is the connection with its reads, `members` selects the etcd member that it uses, `socket` connects
//! to it and `login` authenticates; [`txn`]
//! builds a transaction, the only code that performs [`state::Write`]s; [`writer`] commits it, and
//! [`resolve`] determines the outcome of commits without an answer, and [`outcome`] says what an outcome
//! means for its writer, [`pace`] spaces commits out, `pack` puts independent writes into transactions;
//! `perform` goes from writes to that outcome; [`decide`] commits decisions and makes them again after
//! conflicts; [`replica`] lists and watches everything into [`state::Snapshot`]s; [`election`] makes one
//! process the leader, with a fence that its writes carry; `registration` lists a process while it runs;
//! [`history`] replays committed changes, [`change_stream`] follows them; [`maintenance`] compacts and
//! defragments etcd, over a connection to each `member`, and `quota` reads its quota; [`backup`] streams a
//! snapshot of the database. [`variables`] and `locks` read what no replica holds, and `leases` grants leases
//! for the keys of others.
//!
//! **Invariant**: no write without a compare. There is no put: each [`state::Write`] names the expected
//! state of its key.
//!
//! **Invariant**: a write without an answer ends in [`Error::Unknown`], never in a failure.

pub mod backup;
pub mod change_stream;
pub mod client;
pub mod codec;
pub mod decide;
pub mod election;
pub mod error;
pub mod history;
pub mod keys;
mod leases;
mod locks;
mod login;
pub mod maintenance;
mod member;
mod members;
pub mod outcome;
pub mod pace;
mod pack;
mod perform;
mod quota;
mod registration;
pub mod replica;
pub mod resolve;
mod retry;
mod revision;
mod socket;
mod staged;
pub mod txn;
mod unsecured;
pub mod variables;
mod watch;
pub mod writer;

pub use backup::Backup;
pub use change_stream::{ChangeStream, RevisionChanges, StreamItem};
pub use client::{Client, ClientOptions, Stored};
pub use codec::Value;
pub use decide::{Decision, Transactor, decide_and_commit};
pub use election::{Election, ElectionMetrics, ElectionOptions, Fence, Leadership, run_elected};
pub use error::{ETCD_FLAGS, Error};
pub use keys::Keyspace;
pub use login::User;
pub use maintenance::Compacted;
pub use outcome::{CommitOutcome, Settled};
pub use pack::Packed;
pub use registration::keep_registered;
pub use replica::{
    Delta, Interest, Replica, ReplicaMetrics, ReplicaOptions, Subscription, WaitError,
};
pub use resolve::Resolution;
pub use txn::{Limits, SizeClass, Txn, TxnError};
pub use variables::{ListedVariable, VariableFilter, VariablePage};
pub use writer::{Commit, Conflict, FailedCompare, Writer};
