//! The service over an embedded etcd: what is stored in, what is stored after.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod failover;
mod rollouts;
mod suite;
