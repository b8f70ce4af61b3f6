//! Rollouts: evaluations for new health, failed deployments, reverts, promotions.
//!
//! Pure: time and ids come in as arguments, writes go out as [`Action`]s, each of them one
//! transaction. The loop around it is `services/deployment-watcher/src/run.rs`.
//!
//! Level-triggered: [`Rollout::step`] examines a deployment in a snapshot and returns the missing
//! action, so a lost action is returned again. A new leader examines every deployment once.
//!
//! In reading order: [`progress`] derives counts and deadlines from the replica; `decision` decides
//! about one deployment; `machine` keeps the timers; [`outcome`] and [`action`] make the writes.
//!
//! Success is not decided here: the scheduler finds it while planning, and its plan records it.
//! This crate creates the evaluation once the last allocation is healthy, and afterwards marks the
//! version as stable.
//!
//! [`requests`] decides requests of users for the gateway: promote, pause, resume or fail a deployment,
//! set the health of an allocation; [`update`] makes the answers. The watcher uses [`requests`] for automatic
//! promotions. A paused deployment is left alone.

pub mod action;
pub mod config;
mod decision;
mod machine;
mod memory;
pub mod outcome;
pub mod progress;
pub mod requests;
pub mod update;

#[cfg(test)]
mod tests;

pub use action::{Action, Cause, Reason};
pub use config::Config;
pub use machine::Rollout;
pub use progress::{healthy_canaries, require_progress_by, require_progress_by_at};
