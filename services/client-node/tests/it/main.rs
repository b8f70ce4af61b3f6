//! The agent against scripted gateways, with real processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alloc_requests;
mod artifacts;
mod assigning;
mod commands;
mod containers;
mod ending;
mod files;
mod gateway;
mod logs;
mod metrics;
mod names;
mod networks;
mod node;
mod offers;
mod reporting;
mod restart_request;
mod restarting;
mod running;
mod scripts;
mod sessions;
mod simulated_nodes;
mod templates;
