//! The source of identity tokens of a node's tasks: a gateway.

use std::fmt;

use task_drivers::driver::BoxFuture;
use workload_identity::{SignedToken, TokenRequest};

/// Signs tokens. Hooks of a task's start get theirs by [`crate::identities::wait_for_tokens`].
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// Returns a token for each request, in their order: one attempt, of at most 10 s.
    fn sign(
        &self,
        requests: Vec<TokenRequest>,
    ) -> BoxFuture<'static, Result<Vec<SignedToken>, TokenError>>;
}

/// The reason why there are no tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// A retry is refused as well.
    #[error("{0}")]
    Refused(String),
}

/// The source of a node without gateways.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTokens;

impl TokenSource for NoTokens {
    fn sign(
        &self,
        _: Vec<TokenRequest>,
    ) -> BoxFuture<'static, Result<Vec<SignedToken>, TokenError>> {
        let error = TokenError::Unavailable("this node has no gateway".to_owned());
        Box::pin(async { Err(error) })
    }
}
