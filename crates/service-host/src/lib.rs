//! The shared base of the services over the store: settings, ports, etcd, a replica, RPCs with health
//! and metrics, election, drain.
//!
//! In reading order: [`mod@config`] declares the shared settings; [`App`] is a service, of which
//! [`Service`] is the part of its own; [`Base`] has the bound ports; [`Base::start`] makes it a
//! [`Host`], whose replica follows the store; [`Host::run`] serves and works until drained.
//! `readiness` reports meanwhile whether the service can work. [`TermQueue`] passes messages of RPCs to
//! the loop of a leader.

mod app;
pub mod config;
mod error;
mod etcd;
mod host;
mod readiness;
mod role;
mod term_queue;
#[cfg(test)]
mod tests;

pub use app::{App, Running, Service};
pub use config::{DEFAULT_ELECTION_TTL, ServiceConfig, check_election_ttl};
pub use error::Error;
pub use etcd::client_options;
pub use host::{Base, Host, Rpcs};
pub use role::role_of;
pub use term_queue::TermQueue;
