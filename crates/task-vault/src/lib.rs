//! Vault for the tasks of a node: logins, and the secrets of templates.
//!
//! [`Node`] is the part that the tasks of a node share: it makes their logins for the crate `login_provider`,
//! which keeps the tokens. [`Secrets`] is the source of the look-ups of one task's templates, with its token.
//! [`attributes::read`] gives the node its attributes.

pub mod attributes;
mod login;
mod node;
mod secrets;

pub use node::Node;
pub use secrets::Secrets;
