//! Hands evaluations to workers: by priority, at least once, one of a job at a time.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `handle` is the way from RPCs to the loop;
//! `run` is the leader's loop around [`broker::Broker`], which decides; `world` carries out what it
//! decided, `writes` are the transactions among that; `grpc` are the RPCs.
//!
//! Nothing that matters lives here: queues are rebuilt from the store by whoever leads next.

pub mod app;
pub mod config;
mod grpc;
mod handle;
pub mod metrics;
mod run;
mod world;
mod writes;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is elected, configured and measured under.
pub const SERVICE: &str = "eval-broker";
