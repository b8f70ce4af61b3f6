//! DNS for services: a node answers `<service>.service.kafila` on an address of its own.
//!
//! In reading order: [`DnsConfig`] has the settings; [`question`] reads names, [`reply`] chooses the
//! instances and their order, both pure; [`message`] turns a request into a response with the answers of
//! [`service_watch`]; [`server`] has the sockets. Names outside of the zone are refused: the server
//! forwards nothing.

mod config;
mod message;
mod metrics;
mod question;
mod reply;
mod server;

pub use config::{DnsConfig, SOURCE};
pub use message::{LocalNode, Zone};
pub use metrics::DnsMetrics;
pub use server::Server;
