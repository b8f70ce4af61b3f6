//! Real faults: etcd's members and two of every service as processes on hosts of their own, while
//! users change jobs; then what was promised is compared with what is.
//!
//! A host is a network namespace, so a process is cut off as if its cable were pulled, and what
//! connects the hosts is a switch in user space: it drops and delays packets as it is told, without
//! anything of the kernel that not every machine has.
//!
//! In reading order: [`hosts`] says who there is, [`schedule`] what happens to them and when,
//! [`switch`] and [`network`] connect them, [`cluster`] runs their processes, [`inject`] does to
//! them what the schedule says. [`users`] change and read jobs and remember every answer,
//! [`recorder`] watches etcd, [`job`] is what the answers are held against. [`progress`] measures
//! for how long nothing went on, [`verdict`] says what was lost, [`report`] prints it all, and
//! [`run()`] is one run from start to end.

pub mod cluster;
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
pub mod users;
pub mod verdict;

pub use run::{Options, run};
