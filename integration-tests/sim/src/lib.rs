//! Deterministic simulation of the whole suite in one process: a seed decides network, clocks, disks
//! and faults.
//!
//! In reading order: [`clock`] replaces time and random numbers; [`environment`] has the machines and
//! the network between them; [`journal`] is etcd's disk and reports every revision; [`suite`] starts
//! the services on their machines, with the addresses of [`host_ips`]; [`workload`] changes jobs and
//! records the answers; [`faults`] injects faults, and [`script`] a few chosen ones; [`checker`] checks every
//! revision against the invariants, and `liveness` that live nodes stay up; [`failover`] measures the time
//! without a leader; [`trial`] plays one seed from start to rest; [`totals`] adds up seeds.

pub mod checker;
pub mod clock;
pub mod environment;
pub mod failover;
pub mod faults;
pub mod host_ips;
pub mod journal;
mod liveness;
pub mod script;
pub mod suite;
#[cfg(test)]
mod testing;
pub mod totals;
pub mod trial;
pub mod workload;
