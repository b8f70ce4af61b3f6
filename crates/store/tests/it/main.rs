//! Contract tests of the store, on the embedded etcd and on a real one.
//!
//! Each test is written once and run on both. The real one needs etcd ≥ 3.5.8 on the PATH or in
//! `KAFILA_ETCD`; without it its half reports that and passes, unless `KAFILA_REQUIRE_ETCD=1`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod election;
mod history;
mod memory;
mod replica;
mod replica_trouble;
mod resolve;
mod secured;
mod support;
mod txn;
