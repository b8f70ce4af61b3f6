//! Hands evaluations to workers: by priority, at least once, one of a job at a time.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `handle` is the way from RPCs to the loop;
//! `run` is the leader's loop around [`broker::Broker`], which decides; `performer` executes its
//! effects, `writes` are the transactions among them; `grpc` are the RPCs.
//!
//! Its memory can be lost: the next leader rebuilds the queues from the store.

pub mod app;
pub mod config;
mod grpc;
mod handle;
pub mod metrics;
mod performer;
mod run;
mod writes;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is elected, configured and measured under.
pub const SERVICE: &str = "eval-broker";
