//! The loop that keeps a task's token alive.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_client::Token;
use rand::RngExt as _;
use rand::rngs::StdRng;
use service_kit::clock::sleep_until_deadline;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use tracing::{Instrument as _, debug, info, warn};

use crate::identity::{Identity, IdentityError};
use crate::lifecycle::{FIRST_DELAY, Rules, TokenAction, TokenLifecycle};
use crate::provider::{Cause, Grant, LoginProvider, ProviderError};
use crate::watch::{State, TokenWatch};

/// Tries to revoke a token at the end of its task. Without an answer it ends with its lifetime.
const REVOCATIONS: u32 = 4;
/// The longest delay between them: the files of the allocation are kept meanwhile.
const REVOCATION_DELAY: Duration = Duration::from_secs(5);

/// A login that a keeper begins and keeps.
pub struct Setup {
    pub provider: Arc<dyn LoginProvider>,
    pub identity: Arc<dyn Identity>,
    /// The token is neither renewed nor replaced.
    pub may_expire: bool,
    /// The token that an earlier run of the agent got.
    pub known: Option<Token>,
}

/// A token that is kept alive until the keeper is dropped.
pub struct Keeper {
    provider: Arc<dyn LoginProvider>,
    token: TokenWatch,
    running: AbortHandle,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Keeper {
    /// Begins with a login, or with a renewal of the known token. `rng` spreads renewals and retries.
    pub fn spawn(setup: Setup, rng: StdRng) -> Self {
        let provider = Arc::clone(&setup.provider);
        let rules = Rules {
            may_expire: setup.may_expire,
            tests_tokens: provider.tests_tokens(),
        };
        let test_requests = Arc::new(Notify::new());
        let known = State {
            generation: u64::from(setup.known.is_some()),
            token: setup.known.clone(),
            ..State::default()
        };
        let (sender, state) = watch::channel(known);
        let run = Run {
            life: match setup.known {
                Some(_) => TokenLifecycle::with_token(rules),
                None => TokenLifecycle::new(rules),
            },
            rules,
            setup,
            state: sender,
            rng,
            started: Instant::now(),
            test_requests: Arc::clone(&test_requests),
        };
        let running = tokio::spawn(run.run().in_current_span()).abort_handle();
        Self {
            provider,
            token: TokenWatch {
                state,
                test_requests,
            },
            running,
        }
    }

    /// The token and its changes.
    pub fn state(&self) -> watch::Receiver<State> {
        self.token.state.clone()
    }

    /// The token for those that use it.
    pub fn token(&self) -> TokenWatch {
        self.token.clone()
    }

    /// Ends the renewals, and the token. Tries a few times; a token that is left ends with its lifetime.
    pub fn revoke(&self) -> impl Future<Output = ()> + Send + use<> {
        self.running.abort();
        let (provider, token) = (Arc::clone(&self.provider), self.token.now().token);
        async move {
            let service = provider.name();
            let Some(token) = token else { return };
            for failures in 1..=REVOCATIONS {
                match provider.revoke(token.clone()).await {
                    Ok(()) => {
                        debug!(service, "token revoked");
                        return;
                    }
                    Err(error) if error.cause.is_transient() && failures < REVOCATIONS => {
                        let delays = (FIRST_DELAY, REVOCATION_DELAY);
                        sleep(backoff::delay(delays, failures, 0.0)).await;
                    }
                    // It has ended already.
                    Err(ProviderError {
                        cause: Cause::Denied,
                        ..
                    }) => return,
                    Err(ProviderError { message, .. }) => {
                        warn!(
                            service,
                            error = message,
                            "a token is not revoked; it ends with its lifetime, if it has one"
                        );
                        return;
                    }
                }
            }
        }
    }
}

struct Run {
    setup: Setup,
    rules: Rules,
    life: TokenLifecycle,
    state: watch::Sender<State>,
    rng: StdRng,
    started: Instant,
    test_requests: Arc<Notify>,
}

impl Run {
    async fn run(mut self) {
        loop {
            match self.life.action(self.started.elapsed()) {
                TokenAction::LogIn => self.log_in().await,
                TokenAction::Renew => self.renew().await,
                TokenAction::Wait(until) => {
                    let until = until.map(|until| self.started + until);
                    tokio::select! {
                        () = sleep_until_deadline(until) => {}
                        () = self.test_requests.notified() => self.life.request_test(self.started.elapsed()),
                    }
                }
            }
        }
    }

    async fn log_in(&mut self) {
        let service = self.setup.provider.name();
        let result = self.try_login().await;
        let (now, jitter) = (self.started.elapsed(), self.rng.random());
        match result {
            Ok(grant) => {
                let lifetime_s = grant.lifetime.map(|lifetime| lifetime.as_secs());
                info!(service, accessor = grant.accessor, lifetime_s, "logged in");
                self.life.logged_in(now, &grant, jitter);
                self.state.send_modify(|state| {
                    state.generation += 1;
                    state.token = Some(grant.token);
                    state.problem = None;
                    state.is_refused = false;
                });
            }
            Err(ProviderError { message, cause }) => {
                warn!(service, error = message, "cannot log in");
                let is_refused = !cause.is_transient();
                self.life
                    .login_failed(now, is_refused, cause.retry_after(), jitter);
                self.state.send_if_modified(|state| {
                    let before = state.clone();
                    state.is_refused = is_refused && state.generation == 0;
                    state.problem = Some(message);
                    *state != before
                });
            }
        }
    }

    async fn try_login(&self) -> Result<Grant, ProviderError> {
        let jwt = self.setup.identity.token().await;
        let jwt = jwt.map_err(|error| match error {
            IdentityError::Unavailable(message) => ProviderError {
                message,
                cause: Cause::Transient { retry_after: None },
            },
            IdentityError::Refused(message) => ProviderError {
                message,
                cause: Cause::Refused,
            },
        })?;
        self.setup.provider.log_in(jwt).await
    }

    async fn renew(&mut self) {
        let service = self.setup.provider.name();
        let Some(token) = self.state.borrow().token.clone() else {
            self.life = TokenLifecycle::new(self.rules);
            return;
        };
        let result = self.setup.provider.renew(token).await;
        let (now, jitter) = (self.started.elapsed(), self.rng.random());
        match result {
            Ok(grant) => {
                let lifetime_s = grant.lifetime.map(|lifetime| lifetime.as_secs());
                debug!(service, lifetime_s, "token renewed");
                self.life.renewed(now, &grant, jitter);
                self.report(None);
            }
            Err(ProviderError { message, cause }) => {
                warn!(service, error = message, "cannot renew a token");
                self.life.renewal_failed(now, cause, jitter);
                self.report(Some(format!("the token's renewal failed: {message}")));
            }
        }
    }

    fn report(&self, problem: Option<String>) {
        self.state.send_if_modified(|state| {
            let is_new = state.problem != problem;
            state.problem = problem;
            is_new
        });
    }
}

#[cfg(test)]
mod tests;
