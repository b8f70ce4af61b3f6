//! Logins of a task with its workload identity, at Vault or Consul.
//!
//! A [`LoginProvider`] exchanges a JWT of an [`Identity`] for a token, renews or tests the token, and revokes
//! it. [`TokenLifecycle`] decides when a token is renewed or replaced, and is pure; [`schedule`] has its
//! times. A [`Keeper`] runs it: it logs in, renews, and logs in again after a loss; a [`TokenWatch`] shows
//! the token to its users, and takes their requests for a test.
//!
//! **Invariant**: after the first login no failure of the provider ends the keeper: it retries until it is
//! dropped.

mod identity;
mod keeper;
mod lifecycle;
mod provider;
pub mod schedule;
mod watch;

pub use http_client::Token;
pub use identity::{Identity, IdentityError};
pub use keeper::{Keeper, Setup};
pub use lifecycle::{Rules, TokenAction, TokenLifecycle};
pub use provider::{Cause, Grant, LoginProvider, ProviderError};
pub use watch::{State, TokenWatch};
