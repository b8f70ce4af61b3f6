//! The deployment-watcher: it creates evaluations for new health, fails deployments, reverts their
//! jobs, promotes canaries, and marks stable versions.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `run` is the leader's loop around
//! [`rollout::Rollout`], which decides; `performer` writes its actions, one transaction each.

pub mod app;
pub mod config;
pub mod metrics;
mod performer;
mod run;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is elected, configured and measured under.
pub const SERVICE: &str = "deployment-watcher";
