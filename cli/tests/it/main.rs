//! Tests of the binary against a fake gateway.
//!
//! In reading order: [`gateway`] is the fake gateway, [`state`] its state, [`command`] runs the
//! binary; the other files hold the tests, one file per noun.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that panics fails the test that called it"
)]

#[path = "../../src/fixtures.rs"]
#[allow(dead_code, reason = "some are for the tests of rendering alone")]
mod fixtures;

mod command;
mod gateway;
mod state;

mod alloc_commands;
mod alloc_exec;
mod alloc_logs;
mod alloc_status;
mod completions;
mod connection;
mod debug;
mod deployment;
mod deployment_update;
mod dev;
mod documents;
mod eval;
mod job_file;
mod job_init;
mod job_inspect;
mod job_operations;
mod job_plan;
mod job_run;
mod job_status;
mod job_stop;
mod job_validate;
mod job_versions;
mod monitor;
mod namespace;
mod node;
mod node_drain;
mod node_introduction;
mod node_pool;
mod operator;
mod operator_root;
mod operator_scheduler;
mod restart;
mod scaling;
mod services;
mod settings;
mod snapshot;
mod status;
mod tls;
mod trace;
mod usage;
mod var;
