//! Admission of requests: each is refused, found to be done already, or turned into conditional
//! writes.
//!
//! Pure: snapshot, time and ids are arguments. Every decision becomes one transaction, and its
//! compares protect it from writes that the snapshot did not show. A refusal is final only when the
//! snapshot is as new as the request.
//!
//! In reading order: [`jobs`] decides on requests about jobs, [`cluster`] on requests of operators
//! (namespaces, node pools, volumes, nodes' drains, the scheduler configuration), [`nodes`] on
//! requests of nodes, [`services`] on service registrations. [`space`] refuses new work while etcd is nearly full.

pub mod cluster;
pub mod jobs;
pub mod nodes;
pub mod services;
pub mod space;
#[cfg(test)]
mod testing;
