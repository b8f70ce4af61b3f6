//! Allocations on the node: assignments, runners, and garbage collection.
//!
//! In reading order: [`reader`] reads assignments from the wire, [`record`] is their form in the
//! local state; [`agent`] keeps a runner per allocation; [`apply`] applies updates; [`unwanted`]
//! removes leftovers after a full list; [`gc`] makes room.

pub(crate) mod agent;
mod apply;
pub(crate) mod gc;
pub(crate) mod reader;
mod record;
#[cfg(test)]
mod tests;
mod unwanted;
