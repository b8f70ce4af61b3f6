//! Kill rounds on one node: its agent, supervisors of tasks, shims of containers and the engine are killed with
//! SIGKILL at random instants, with tasks of raw_exec, exec and docker.
//!
//! In reading order: [`schedule`] draws the rounds from a seed, [`jobs`] are the jobs, [`engine`] is a Docker
//! Engine of the run's own, [`machine`] finds processes and [`traces`] what is left of jobs, with their control
//! [`groups`]; [`rounds`] plays and checks, [`report`] has the figures, [`run`](mod@run) sets all of it up. A
//! run has namespaces of its own for processes, mounts and networks ([`own_machine`]), so nothing of it outlives
//! it, and what is left of a job is found by listing all.

pub mod engine;
pub mod groups;
pub mod jobs;
pub mod machine;
pub mod own_machine;
pub mod report;
pub mod rounds;
pub mod run;
pub mod schedule;
pub mod traces;

pub use run::{Options, run};
