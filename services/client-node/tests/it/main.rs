//! The agent against gateways that do as they are told, with real processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod assigning;
mod belongings;
mod ending;
mod gateway;
mod light;
mod logs;
mod node;
mod reporting;
mod restarting;
mod running;
mod sessions;
