//! The whole suite in one process, over a network, clocks and disks that a seed decides.
//!
//! In reading order: [`clock`] is what the machine says of time and chance; [`world`] has machines
//! and the network between them; [`journal`] is etcd's disk, and sees every revision; [`suite`]
//! starts the services on their machines; [`users`] ask for jobs and remember what they were told;
//! [`faults`] says what breaks when; [`watcher`] holds every revision against what must be true;
//! [`failover`] takes the time without a leader; [`trial`] plays one seed from start to rest;
//! [`sums`] is what many seeds come to.

pub mod clock;
pub mod failover;
pub mod faults;
pub mod journal;
pub mod suite;
pub mod sums;
#[cfg(test)]
mod testing;
pub mod trial;
pub mod users;
pub mod watcher;
pub mod world;
