//! Verifies plans and commits them: the one place where the schedulers' optimism is checked.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `grpc` takes plans and hands them through
//! `desk` to the leader; `run` is the leader's loop around [`applier::Applier`], which decides;
//! `verify` judges plans on threads of their own, `commit` writes transactions, `whole` those of a plan that is
//! only valid as a whole.

pub mod app;
mod commit;
pub mod config;
mod desk;
mod grpc;
pub mod metrics;
mod run;
#[cfg(test)]
mod testing;
mod verify;
mod whole;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is elected, configured and measured under.
pub const SERVICE: &str = "plan-applier";
