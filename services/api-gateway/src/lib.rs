//! The public API: requests are decided on, committed, and answered from the replica.
//!
//! In reading order: the crate `admission` decides on requests, and `gateway_core` commits the
//! decisions; [`grpc`] translates between the wire and both. [`reads`] answers from the replica;
//! [`events`] streams committed writes; the crate `dry_run` runs the scheduler on a registration, and
//! [`concurrency_limit`] bounds how many run at once; [`space`] refuses new work while etcd is nearly
//! full; `maintenance` forwards requests to the
//! cluster-controller, and `backup` streams snapshots of etcd. `node_gateway` has the sessions of nodes.
//! [`gateway`] is the state that the handlers share, and [`app`] wires it from a [`Config`]. A gateway is
//! stateless: its memory is a view of the store.

pub mod app;
pub mod backup;
pub mod concurrency_limit;
pub mod config;
pub mod events;
pub mod gateway;
pub mod grpc;
mod maintenance;
pub mod metrics;
pub mod reads;
pub mod space;

pub use app::App;
pub use config::Config;
pub use service_host::Error;

/// The name that it is configured and measured under.
pub const SERVICE: &str = "api-gateway";
