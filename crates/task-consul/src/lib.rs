//! Consul for the tasks of a node: look-ups of templates, tokens, and the node's attributes.
//!
//! [`query`] reads the arguments of a template's function, and [`answer`] gives the data its form there; both
//! are pure. [`LookUps`] keeps one query that waits for changes for each look-up, which all tasks of the
//! node share. [`Data`] is the source of look-ups of one task, with its token or the node's. [`Node`] is the
//! part that the tasks of a node share: it makes their logins for the crate `login_provider`.
//! [`attributes::read`] gives the node its attributes.
//!
//! **Invariant**: an answer stays when Consul fails later.

pub mod answer;
pub mod attributes;
mod data;
mod login;
mod look_ups;
mod node;
pub mod query;

pub use data::Data;
pub use look_ups::LookUps;
pub use node::Node;
