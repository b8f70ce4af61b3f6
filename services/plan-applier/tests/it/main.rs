//! The service over an embedded etcd, called through the generated client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_nodes;
mod committing;
mod failover;
mod suite;
