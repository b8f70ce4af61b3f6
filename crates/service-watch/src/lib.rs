//! Services that a node looks up: the names that it asks for, and the newest answers.
//!
//! A node has one subscription at a gateway for all names; its loop is in `crates/gateway-sources`. It sends
//! the names of the [`Book`], and records the answers there. [`Services`] shares the book with those
//! that look up. An outage of the gateways keeps the last answers and shows their age.

mod book;
mod services;

pub use book::{Answer, Book, Instance, NAMES_MAX, ServiceName};
pub use services::{NoAnswer, Services};
