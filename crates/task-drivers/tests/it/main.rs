//! Drivers against real processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench;
mod commands;
mod environment;
mod exec;
mod java;
mod mock;
mod programs;
mod qemu;
mod raw_exec;
mod recovery;
mod stopping;
