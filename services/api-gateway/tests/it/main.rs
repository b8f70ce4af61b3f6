//! Gateways over an embedded etcd, called through the generated client.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod agent;
mod blocking;
mod drain;
mod eligibility;
mod events;
mod explain;
mod identities;
mod introductions;
mod jobs;
mod liveness;
mod locks;
mod logs;
mod malformed;
mod mixed_versions;
mod namespaces;
mod node_connections;
mod node_pools;
mod node_requests;
mod plan;
mod reads;
mod reports;
mod rollouts;
mod scaling_policies;
mod scheduler_config;
mod service_streams;
mod sessions;
mod sizes;
mod space;
mod stale;
mod support;
mod traces;
mod variables;
mod volumes;
