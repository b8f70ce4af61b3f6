//! A service that gives tokens for JWTs.

use std::time::Duration;

use futures::future::BoxFuture;
use http_client::Token;

/// Gives tokens, in one place of a service and for one role or auth method. Each call is one attempt.
pub trait LoginProvider: Send + Sync {
    /// The service's name in logs, as in `Vault`.
    fn name(&self) -> &'static str;

    /// True if [`Self::renew`] only tests a token that cannot be renewed: a token in doubt is then tested,
    /// also one that never ends.
    fn tests_tokens(&self) -> bool;

    /// Exchanges a JWT for a token.
    ///
    /// # Errors
    /// The service gives no answer in time, or refuses; here and below, [`Cause`] tells what a retry is worth.
    fn log_in(&self, jwt: Token) -> BoxFuture<'static, Result<Grant, ProviderError>>;

    /// Extends the life of a token, or tests it. The grant's own token does not count.
    ///
    /// # Errors
    /// As above.
    fn renew(&self, token: Token) -> BoxFuture<'static, Result<Grant, ProviderError>>;

    /// Ends a token.
    ///
    /// # Errors
    /// As above. A token that the service does not know is [`Cause::Denied`].
    fn revoke(&self, token: Token) -> BoxFuture<'static, Result<(), ProviderError>>;
}

/// A token with its lifetime from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    pub token: Token,
    /// Names the token without giving its rights.
    pub accessor: String,
    /// `None`: it does not end.
    pub lifetime: Option<Duration>,
    pub is_renewable: bool,
}

/// A failed call. The message has no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderError {
    pub message: String,
    pub cause: Cause,
}

/// The cause of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A retry may succeed, after the delay that the service asked for.
    Transient { retry_after: Option<Duration> },
    /// The token or JWT is unknown, has ended, or lacks the right.
    Denied,
    /// The request itself is wrong.
    Refused,
}

impl Cause {
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Transient { .. })
    }

    /// The delay that the service asked for.
    pub fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Transient { retry_after } => retry_after,
            Self::Denied | Self::Refused => None,
        }
    }
}
