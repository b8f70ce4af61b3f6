//! Sources of data.

use std::time::Duration;

use futures::future::BoxFuture;
use template::Lookup;
use template::source::Answer;

/// A source of data for look-ups.
pub trait Fetch: Send + Sync {
    /// Looks data up, once. The caller bounds the time and repeats after a failure.
    fn fetch(&self, lookup: Lookup) -> BoxFuture<'static, Result<Fetched, FetchError>>;
}

/// Data, and when to look again.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// `None`: it has not changed.
    pub answer: Option<Answer>,
    /// `None`: it does not change.
    pub again: Option<Duration>,
}

/// A failed look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchError {
    /// The reason, for the event of a task that waits. It has no secrets.
    pub message: String,
    /// The delay that the source asks for.
    pub retry_after: Option<Duration>,
}

impl FetchError {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            retry_after: None,
        }
    }
}
