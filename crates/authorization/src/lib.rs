//! Authorization: the roles that may call each RPC.
//!
//! [`table`] is the only list of them, and [`check`] the only decision; the layer around every gRPC
//! server of ours asks it before a handler runs. A method that the table lacks cannot be called, and a
//! test compares the table with the descriptors of `/proto`. A right to call is not all: a node's
//! requests are about itself only, which `admission` checks, because it reads their fields.

mod decision;
mod table;

pub use decision::{AccessRefusal, Allowed, check};
pub use table::{Access, METHODS, Method, find};
