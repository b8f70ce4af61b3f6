//! Requests of users for the volumes of storage systems: registration, creation, deletion, snapshots.
//!
//! [`CsiVolumes`] is the state of all requests. `registration` registers volumes and forgets them,
//! `controller` lets a plugin on a node act, and `messages` has the plugins' messages. The crate `admission`
//! decides; attachments of volumes to nodes are those of the node gateway.

mod controller;
mod messages;
mod registration;
mod requests;

pub use requests::CsiVolumes;
