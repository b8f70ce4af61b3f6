//! Consul for the tasks of a node: look-ups of templates, tokens, and the node's attributes.
//!
//! [`query`] reads the arguments of a template's function, and [`answer`] gives the data its form there; both
//! are pure. [`LookUps`] keeps one query that waits for changes for each look-up, which all tasks of the
//! node share. A [`Keeper`] logs a task in with its identity ([`Identity`]) and keeps the token alive; [`Data`]
//! is the source of look-ups of one task, with its token or the node's. [`Node`] is the part that the tasks of a
//! node share, and [`Probe`] gives the node its attributes.
//!
//! **Invariant**: an answer stays when Consul fails later, and no failure of Consul ends a keeper.

pub mod answer;
mod data;
mod keeper;
mod look_ups;
mod node;
mod probe;
pub mod query;

pub use data::Data;
pub use keeper::{Identity, IdentityError, Keeper, Setup, State};
pub use look_ups::LookUps;
pub use node::Node;
pub use probe::Probe;
