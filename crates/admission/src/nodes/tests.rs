//! Requests of nodes: heartbeats, packing of reports, registrations.

mod beating;
mod packing;
mod registering;
mod reporting;
mod sessions;
