//! Requests of nodes: registration, sessions, and reports of their allocations.
//!
//! In reading order: [`introduction`] decides on a node's certificate, with [`hashes`]; [`revocation`]
//! takes a node's rights back; [`session`] authenticates a
//! node; [`registration`] decides on its record, and [`node_evals`] adds the evaluations that a
//! changed node causes; [`heartbeats`] tells whether its heartbeats are delivered; [`reports`]
//! decides on its reports of allocations, [`packing`] puts them into transactions, and
//! [`identities`] decides on the tokens of its tasks, [`look_ups`] on the data of their templates, [`csi`] on the
//! volumes that it mounts.

pub mod csi;
pub mod hashes;
pub mod heartbeats;
pub mod identities;
pub mod introduction;
pub mod look_ups;
pub mod node_evals;
pub mod packing;
pub mod registration;
pub mod reports;
pub mod revocation;
pub mod session;
#[cfg(test)]
mod tests;
