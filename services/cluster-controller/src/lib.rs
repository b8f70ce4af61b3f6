//! Keeps the cluster honest when nobody asks: which nodes are alive, who leaves them, what may be
//! forgotten, and when periodic jobs are launched.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `report` takes in the heartbeats that
//! gateways pass on; `run` is the leader's loop around [`upkeep::Liveness`], which decides; `world`
//! writes what it decided; `drain` is the loop around [`upkeep::drain::look`], `garbage` the one around
//! [`upkeep::garbage::sweep`], `periodic` that around [`upkeep::periodic::Launcher`], `deletions` that around
//! [`upkeep::deletions::Deletions`]; `grpc` has the RPCs.
//!
//! Heartbeats never touch etcd: only transitions are written, each in one transaction with the
//! evaluations that it needs.

pub mod app;
pub mod config;
mod deletions;
mod drain;
mod garbage;
mod grpc;
pub mod metrics;
mod periodic;
mod report;
mod run;
mod world;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is elected, configured and measured under.
pub const SERVICE: &str = "cluster-controller";
