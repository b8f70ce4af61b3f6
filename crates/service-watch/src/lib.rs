//! Services that a node looks up: the names that it asks for, and the newest answers.
//!
//! A node has one subscription at a gateway for all names; its loop is in `crates/gateway-sources`. It sends
//! the names of the [`Subscription`], and records the answers there. [`Services`] shares it with those that look
//! up. An outage of the gateways keeps the last answers and shows their age.

mod services;
mod subscription;

pub use services::{NoAnswer, Services};
pub use subscription::{Answer, Instance, NAMES_MAX, ServiceName, Subscription};
