//! The scheduler-worker turns evaluations into plans: it takes them from the eval-broker, runs the
//! scheduler on a snapshot, and submits the plan to the plan-applier.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `session` keeps the stream of deliveries
//! open, and `in_flight` counts the evaluations in flight; `work` processes one delivery; `peers` finds the
//! two leaders. The pure crate `scheduler` decides. Nothing here writes to the store.

pub mod app;
pub mod config;
mod in_flight;
pub mod metrics;
mod peers;
mod session;
mod work;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is configured and measured under.
pub const SERVICE: &str = "scheduler-worker";
