//! Vault for one task: its token, kept alive, and the secrets of its templates.
//!
//! [`TokenLifecycle`] decides when a token is renewed or replaced, and is pure. A [`Keeper`] runs it: it logs in with
//! the task's identity ([`Identity`]), renews, and logs in again after a loss. [`Secrets`] is the source
//! of the look-ups of templates; it uses the keeper's token. [`Node`] is the part that the tasks of a
//! node share, and [`Probe`] gives the node its attributes.
//!
//! **Invariant**: after the first login no failure of Vault ends the keeper: it retries until it is dropped.

mod keeper;
mod node;
mod probe;
mod secrets;
mod token_lifecycle;

pub use keeper::{Identity, IdentityError, Keeper, Setup, State};
pub use node::Node;
pub use probe::Probe;
pub use secrets::Secrets;
pub use token_lifecycle::{TokenAction, TokenLifecycle};
