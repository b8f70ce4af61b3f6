//! Networks of allocations on a machine of their own: a network namespace for each test.
//!
//! They need root, nftables, iproute2 and the CNI plugins. Without them they are skipped, unless
//! `KAFILA_REQUIRE_NETWORKS` is set.

mod bridge;
mod cleanup;
mod machine;
mod plugins;
