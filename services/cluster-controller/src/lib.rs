//! Background control of the cluster: node liveness, drains, garbage collection, periodic launches,
//! deletion timeouts, maintenance of etcd.
//!
//! In reading order: [`config`]; [`app`] is the wiring; `term` has the writer and the clock that the
//! leader's loops share. Each loop surrounds a decider of the crate [`controller`]: `run` the node
//! liveness, whose heartbeats come through `report`; `drain`, `garbage`, `periodic` and `deletions`
//! the modules of the same names; `etcd` maintains etcd, also without a leader. `grpc` has the RPCs.
//!
//! Heartbeats never touch etcd: only transitions are written, each in one transaction with the
//! evaluations that it needs.

pub mod app;
pub mod config;
mod deletions;
mod drain;
mod etcd;
mod garbage;
mod grpc;
pub mod metrics;
mod periodic;
mod report;
mod run;
mod term;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is elected, configured and measured under.
pub const SERVICE: &str = "cluster-controller";
