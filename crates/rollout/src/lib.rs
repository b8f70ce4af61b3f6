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
//! the version stable afterwards.
//!
//! What users ask for (to promote, pause, resume or fail a deployment, to say how an allocation is)
//! is decided in [`user`], for whoever answers them; the watcher promotes with it by itself. A
//! paused deployment is left alone.

pub mod action;
mod machine;
pub mod outcome;
pub mod progress;
mod reschedule;
pub mod user;
mod verdict;

#[cfg(test)]
mod tests;

pub use action::{Action, Cause, ClientWrite, Reason};
pub use machine::{Config, Rollout};
pub use progress::{healthy_canaries, require_progress_by, require_progress_by_at};
