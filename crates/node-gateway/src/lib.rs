//! Sessions of nodes: registration, heartbeats, assignments, reports.
//!
//! A library that the api-gateway mounts; it has no process of its own yet.
//!
//! In reading order: [`mount()`] wires a [`NodeGateway`] and its loops; [`grpc`] answers the RPCs
//! of nodes, and [`watch`] is the stream of one node. [`sessions`] remembers the pending changes of
//! each stream, `api_view::assignments` builds its messages, [`dispatch_loop`] feeds it with changes.
//! [`shared_heartbeats`] holds the heartbeats of nodes, and [`liveness_loop`] passes them on.
//! [`report_loop`] stores reports in the transactions that `admission` packs them into, and `services_loop`
//! removes the service registrations that no report ends. [`introduction`] issues the certificates of
//! nodes. `service_watch` is the stream of the services that a node looks up, from the
//! `api_view::service_index` that `service_loop` keeps. [`identities`] signs the tokens of tasks with a key
//! of the crate `keyring`. `csi` attaches storage systems' volumes for nodes, `detach_loop` detaches them.
//! Requests of users that nodes answer are those of the crate `node-calls`, and connections that nodes open
//! of `node-connections`.

mod csi;
mod detach_loop;
pub mod dispatch_loop;
pub mod grpc;
pub mod identities;
pub mod introduction;
pub mod liveness_loop;
mod look_ups;
pub mod metrics;
pub mod mount;
pub mod node_ca;
pub mod node_gateway;
pub mod report_loop;
mod report_transactions;
mod requests;
mod service_loop;
mod service_watch;
mod services_loop;
pub mod sessions;
pub mod shared_heartbeats;
pub mod watch;

pub use mount::{Mounted, mount};
pub use node_ca::NodeCa;
pub use node_gateway::{NodeConfig, NodeGateway};
