//! Admits, serves and translates: the public API and the nodes' sessions.
//!
//! In reading order: [`admission`] decides what becomes of a user's request, [`nodes`] what becomes
//! of a node's, [`settings`] of an operator's; all return [`writes`], and [`gateway`] carries them
//! out. [`reads`] answers questions from the replica, [`logs`] finds a task's output; `maintenance`
//! passes on what operators ask the cluster-controller for; [`turns`] keeps dry runs from taking
//! every core; [`events`] tells of every write. [`grpc`] translates; [`app`] wires it all together
//! from a [`Config`]. Stateless: everything a gateway remembers is a view of the
//! store, or a heartbeat that the next one repeats.

pub mod admission;
pub mod app;
pub mod config;
pub mod error;
pub mod events;
pub mod gateway;
pub mod grpc;
pub mod logs;
mod maintenance;
pub mod metrics;
pub mod nodes;
pub mod reads;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod turns;
pub mod writes;

pub use app::{App, BuildError, RunError};
pub use config::Config;
