//! The token as its users see it.

use std::sync::Arc;

use http_client::Token;
use tokio::sync::{Notify, watch};

/// The token at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub token: Option<Token>,
    /// Number of logins that gave a token, a restored one included.
    pub generation: u64,
    /// The reason of the last failure, `None` after a success. It has no secrets.
    pub problem: Option<String>,
    /// The service or the gateway refuses the first login: a retry alone does not help.
    pub is_refused: bool,
}

/// A token that a keeper keeps. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TokenWatch {
    pub(crate) state: watch::Receiver<State>,
    pub(crate) test_requests: Arc<Notify>,
}

impl TokenWatch {
    /// Returns the token as it is now.
    pub fn now(&self) -> State {
        self.state.borrow().clone()
    }

    /// Tells the keeper that the service has denied a request of the token: it may be revoked.
    pub fn request_test(&self) {
        self.test_requests.notify_one();
    }
}
