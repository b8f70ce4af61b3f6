//! Black-box test harness: real processes over a real etcd, driven through the public API and the
//! `kafila` command.
//!
//! In reading order: [`binary`] runs commands, [`process`] manages processes, [`suite`] starts the
//! services, [`api`] calls them, [`load`] is a simulated user that checks acknowledged changes,
//! [`collector`] receives traces and logs, [`history`] checks every revision afterwards; [`faults`] injects
//! faults into a larger suite on separate hosts; [`kill_rounds`] kills parts of one node; [`containers`] tests the images and
//! docker-compose.yml; [`yaml`] reads its files, and [`documents`] the commands in documents. The tests are
//! in `tests/it`.

pub mod api;
pub mod binary;
pub mod collector;
pub mod containers;
pub mod documents;
pub mod faults;
pub mod history;
pub mod kill_rounds;
pub mod load;
pub mod process;
pub mod suite;
pub mod yaml;
