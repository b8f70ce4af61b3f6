//! Decides what becomes of deployments: when the next look at the job is due, when a rollout has
//! failed, and what it goes back to.
//!
//! Pure: time and ids come in as arguments, what is to be written goes out as [`Action`]s, each of
//! them one transaction. The loop around it is `services/deployment-watcher/src/run.rs`.
//!
//! Level-triggered: [`Rollout::step`] looks at a deployment as it stands in a snapshot and does
//! what is missing, so an action that got lost is asked for again by the next look. A new leader
//! looks at every deployment once.
//!
//! In reading order: [`progress`] derives counts and deadlines from the replica; `verdict` judges
//! one deployment; `machine` keeps the timers; [`outcome`] makes the values that are written.
//!
//! Success is not decided here: the scheduler sees it while it plans, and says so in its plan.
//! This crate sees to it that the scheduler looks once the last allocation is healthy, and marks
//! the version stable afterwards. Promotion of canaries, pausing and resuming are asked for by
//! users and belong next to [`outcome`]; a paused deployment is already left alone.

pub mod action;
mod machine;
pub mod outcome;
pub mod progress;
mod reschedule;
mod verdict;

#[cfg(test)]
mod tests;

pub use action::{Action, Cause, Reason};
pub use machine::{Config, Rollout};
pub use progress::require_progress_by;
