//! Moves deployments along as their allocations become healthy, fails those that do not get on,
//! and marks versions that proved stable.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `run` is the leader's loop around
//! [`rollout::Rollout`], which decides; `world` writes what it decided, one transaction an action.

pub mod app;
pub mod config;
pub mod metrics;
mod run;
mod world;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is elected, configured and measured under.
pub const SERVICE: &str = "deployment-watcher";
