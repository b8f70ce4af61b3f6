//! Lifecycle of allocations on one node: assignments, starts, restarts, kill order, health, end,
//! reports and collection.
//!
//! Pure: time and randomness are arguments, effects are values, so a test or the simulator can
//! replay any history. The loop around an allocation is `crates/task-runner/src/run.rs`.
//! It stores [`AllocState`] before it performs the effects of a step, so a node's agent can be killed
//! at any instruction and continue from there ([`AllocRunner::restore`]).
//!
//! In reading order: [`update_decision`] decides whether a node acts on the servers' update, and [`assignment`]
//! compares it with the node's allocations;
//! [`time`] holds the two clocks of a machine; [`spec`] is the part of a job that the machines need;
//! [`event`] and [`effect`] are a machine's interface; [`alloc`] is the machine of an allocation and
//! owns one machine per task ([`task`]); [`restart`] is the restart policy, [`gates`] the start
//! order, [`kill`] the kill order, [`checks`] the states of service checks, [`health`] the verdict for
//! a deployment, [`task_event`] the events that users read; [`reports`] queues reports to the servers;
//! [`gc`] chooses allocations to remove, [`restore`] those that go on after a restart of the agent.
//!
//! Source: Nomad 2.0 behaviour, apart from the differences that the comments name.

pub mod alloc;
pub mod assignment;
pub mod checks;
pub mod effect;
pub mod event;
mod gates;
pub mod gc;
mod health;
mod kill;
pub mod reports;
mod restart;
pub mod restore;
pub mod spec;
mod task;
mod task_event;
pub mod time;
pub mod update_decision;

#[cfg(test)]
mod tests;

pub use alloc::{AllocRunner, AllocState, Boot, NoProcess, RestartRefusal};
pub use assignment::{
    Assigned, Assignment, Changes, InvalidAssignment, JoblessAssignment, Known, Update,
    predecessors_first,
};
pub use checks::{CheckKey, CheckOutcome, CheckResult, CheckStatus, Watched};
pub use effect::Effect;
pub use event::{Event, StartFailure, StartStep};
pub use reports::{LastReport, Report, ReportQueue};
pub use restore::{Restoration, boot_of, contact_age, kept_allocs, restoration};
pub use spec::{AllocSpec, HealthSpec, Limits, Role, TaskSpec};
pub use time::{Now, Uptime};
pub use update_decision::{
    Accepted, NodeView, UpdateDecision, is_predecessor, receive, unrunnable,
};
