//! The identity that a task logs in with.

use futures::future::BoxFuture;
use http_client::Token;

/// The identity of a task: signs a JWT for each login.
pub trait Identity: Send + Sync {
    fn token(&self) -> BoxFuture<'static, Result<Token, IdentityError>>;
}

/// A missing JWT. The message has no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// A retry may succeed.
    Unavailable(String),
    Refused(String),
}
