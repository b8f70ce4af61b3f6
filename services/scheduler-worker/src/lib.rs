//! Turns evaluations into plans: takes them from the eval-broker, runs the scheduler on a snapshot,
//! submits what it wants to the plan-applier.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `session` keeps the stream of deliveries
//! open; `work` carries one delivery to its end; `peers` finds and calls the two leaders. What a
//! plan says is decided in the crate `scheduler`, which is pure. Nothing here writes to the store.

pub mod app;
pub mod config;
pub mod metrics;
mod peers;
mod session;
mod work;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is configured and measured under.
pub const SERVICE: &str = "scheduler-worker";
