//! RPCs of the gateway, one method each, with deadlines and retries.
//!
//! `transport` makes the calls; the other files hold the methods of one noun each.

mod agent;
mod alloc;
mod csi;
mod deployment;
mod eval;
mod event;
mod job;
mod job_operations;
mod namespace;
mod node;
mod node_pool;
mod operator;
mod rollout;
mod scaling;
mod services;
mod transport;
mod variable;
mod volume;

pub(crate) use self::alloc::LogsRequest;
pub(crate) use self::job::JobWithAllocs;
pub(crate) use self::transport::{Blocking, Connection};
