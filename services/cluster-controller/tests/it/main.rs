//! The service over an embedded etcd: gateways report through the generated client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod deletions;
mod drain;
mod etcd;
mod failover;
mod garbage;
mod job_metrics;
mod launches;
mod liveness;
mod suite;
