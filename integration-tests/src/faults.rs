//! Fault tests: etcd's members and two of every service as processes on separate hosts, while a
//! workload changes jobs; afterwards the acknowledged changes are compared with the history.
//!
//! A host is a network namespace, so a process can be cut off like by a pulled cable. A switch in user
//! space connects the hosts; it drops and delays packets by rules, without optional kernel modules.
//!
//! In reading order: [`hosts`] names the hosts, [`schedule`] draws the faults, [`switch`] and
//! [`network`] connect the hosts, [`cluster`] runs the processes, [`inject`] injects the faults,
//! `full_store` takes etcd's space.
//! [`workload`] changes and reads jobs and records every answer, [`recorder`] watches etcd, [`job`] is
//! the model for the answers. [`progress`] measures pauses of progress, [`verdict`] finds lost changes,
//! [`report`] prints the results, and [`run()`] is one run from start to end.

pub mod cluster;
mod full_store;
pub mod hosts;
pub mod inject;
pub mod job;
pub mod network;
pub mod progress;
pub mod recorder;
pub mod report;
pub mod run;
pub mod schedule;
pub mod switch;
pub mod verdict;
pub mod workload;

pub use run::{Options, run};
