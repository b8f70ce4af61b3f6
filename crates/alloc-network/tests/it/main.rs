//! Networks of allocations on a machine of their own: a network namespace for each test.
//!
//! They need root, nftables, iproute2 and the CNI plugins. Without them they are skipped, unless
//! `KAFILA_REQUIRE_NETWORKS` is set.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "real programs take real time")]

mod bridge;
mod cleanup;
mod machine;
mod plugins;
