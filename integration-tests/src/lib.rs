//! The suite from outside: real processes over a real etcd, driven through the public API and the
//! `kafila` command.
//!
//! In reading order: [`binary`] runs commands, [`process`] keeps processes, [`suite`] starts
//! everything, [`api`] calls it, [`load`] is a user who remembers promises, [`collector`] receives
//! traces, [`history`] looks at every revision afterwards; [`faults`] breaks a larger suite on hosts
//! of its own. The tests are in `tests/it`.

pub mod api;
pub mod binary;
pub mod collector;
pub mod faults;
pub mod history;
pub mod load;
pub mod process;
pub mod suite;
