//! The service over an embedded etcd: stored objects before and after.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod failover;
mod rollouts;
mod suite;
