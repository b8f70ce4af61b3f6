//! Verifies plans and commits them: the only place that checks the schedulers' optimism.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `grpc` receives plans and passes them through
//! the `submission_queue` to the leader; `run` is the leader's loop around [`applier::Applier`], which
//! decides; `verify` checks plans on blocking threads; `commit` writes transactions; `all_at_once`
//! writes plans that are only valid as a whole.

mod all_at_once;
pub mod app;
mod commit;
pub mod config;
mod grpc;
pub mod metrics;
mod run;
mod submission_queue;
#[cfg(test)]
mod testing;
mod verify;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is elected, configured and measured under.
pub const SERVICE: &str = "plan-applier";
