//! The loop that keeps a task's token alive.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use rand::RngExt as _;
use rand::rngs::StdRng;
use service_kit::clock::sleep_until_deadline;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use tracing::{Instrument as _, debug, info, warn};
use vault::{Auth, Client, Failure, Login, Token};

use crate::token_lifecycle::{FIRST_DELAY, TokenAction, TokenLifecycle};

/// Tries to revoke a token at the end of its task. Without an answer it ends with its lifetime.
const REVOCATIONS: u32 = 4;
/// The longest delay between them: the files of the allocation are kept meanwhile.
const REVOCATION_DELAY: Duration = Duration::from_secs(5);

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

/// The way of a task to its token.
pub struct Setup {
    /// In the task's namespace.
    pub client: Client,
    /// Path of the auth method.
    pub auth_path: String,
    /// Empty: the default role of the auth method.
    pub role: String,
    pub may_expire: bool,
    pub identity: Arc<dyn Identity>,
    /// The token that an earlier run of the agent got.
    pub known: Option<Token>,
}

/// The token at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub token: Option<Token>,
    /// Number of logins that gave a token, a restored one included.
    pub generation: u64,
    /// The reason of the last failure, `None` after a success. It has no secrets.
    pub problem: Option<String>,
    /// Vault or the gateway refuses the first login: a retry alone does not help.
    pub is_refused: bool,
}

/// A token that is kept alive until the keeper is dropped.
pub struct Keeper {
    client: Client,
    state: watch::Receiver<State>,
    doubts: Arc<Notify>,
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
        let client = setup.client.clone();
        let doubts = Arc::new(Notify::new());
        let known = State {
            generation: u64::from(setup.known.is_some()),
            token: setup.known.clone(),
            ..State::default()
        };
        let (sender, state) = watch::channel(known);
        let run = Run {
            life: match setup.known {
                Some(_) => TokenLifecycle::with_token(setup.may_expire),
                None => TokenLifecycle::new(setup.may_expire),
            },
            setup,
            state: sender,
            rng,
            started: Instant::now(),
            doubts: Arc::clone(&doubts),
        };
        let running = tokio::spawn(run.run().in_current_span()).abort_handle();
        Self {
            client,
            state,
            doubts,
            running,
        }
    }

    /// The token and its changes.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    pub(crate) fn doubts(&self) -> Arc<Notify> {
        Arc::clone(&self.doubts)
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Ends the renewals, and the token. Tries a few times; a token that is left ends with its lifetime.
    pub fn revoke(&self) -> impl Future<Output = ()> + Send + use<> {
        self.running.abort();
        let (client, token) = (self.client.clone(), self.state.borrow().token.clone());
        async move {
            let Some(token) = token else { return };
            for failures in 1..=REVOCATIONS {
                match client.revoke_self(&token).await {
                    Ok(()) => {
                        debug!("token of Vault revoked");
                        return;
                    }
                    Err(failure) if failure.is_transient() && failures < REVOCATIONS => {
                        sleep(backoff::delay(
                            (FIRST_DELAY, REVOCATION_DELAY),
                            failures,
                            0.0,
                        ))
                        .await;
                    }
                    // It has ended already.
                    Err(Failure::Forbidden { .. }) => return,
                    Err(failure) => {
                        warn!(%failure, "a token of Vault is not revoked; it ends with its lifetime");
                        return;
                    }
                }
            }
        }
    }
}

struct Run {
    setup: Setup,
    life: TokenLifecycle,
    state: watch::Sender<State>,
    rng: StdRng,
    started: Instant,
    doubts: Arc<Notify>,
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
                        () = self.doubts.notified() => self.life.doubt(self.started.elapsed()),
                    }
                }
            }
        }
    }

    async fn log_in(&mut self) {
        let result = self.try_login().await;
        let (now, jitter) = (self.started.elapsed(), self.rng.random());
        match result {
            Ok(auth) => {
                info!(lifetime_s = auth.lease_duration, "logged in to Vault");
                self.life.logged_in(now, &auth, jitter);
                self.state.send_modify(|state| {
                    state.generation += 1;
                    state.token = Some(auth.token);
                    state.problem = None;
                });
            }
            Err(LoginError {
                message,
                is_refused,
                asked,
            }) => {
                warn!(error = message, "cannot log in to Vault");
                self.life.login_failed(now, is_refused, asked, jitter);
                self.state.send_if_modified(|state| {
                    let before = state.clone();
                    state.is_refused = is_refused && state.generation == 0;
                    state.problem = Some(message);
                    *state != before
                });
            }
        }
    }

    async fn try_login(&self) -> Result<Auth, LoginError> {
        let jwt = self
            .setup
            .identity
            .token()
            .await
            .map_err(|error| match error {
                IdentityError::Unavailable(message) => LoginError {
                    message,
                    is_refused: false,
                    asked: None,
                },
                IdentityError::Refused(message) => LoginError {
                    message,
                    is_refused: true,
                    asked: None,
                },
            })?;
        let login = Login {
            path: self.setup.auth_path.clone(),
            role: self.setup.role.clone(),
            jwt,
        };
        let result = self.setup.client.log_in(&login).await;
        result.map_err(|failure| LoginError {
            message: format!(
                "the login at auth/{} failed: {failure}",
                login.path.trim_matches('/')
            ),
            is_refused: !failure.is_transient(),
            asked: failure.retry_after(),
        })
    }

    async fn renew(&mut self) {
        let Some(token) = self.state.borrow().token.clone() else {
            self.life = TokenLifecycle::new(self.setup.may_expire);
            return;
        };
        let result = self.setup.client.renew_self(&token).await;
        let (now, jitter) = (self.started.elapsed(), self.rng.random());
        match result {
            Ok(auth) => {
                debug!(lifetime_s = auth.lease_duration, "token of Vault renewed");
                self.life.renewed(now, &auth, jitter);
                self.report(None);
            }
            Err(failure) => {
                warn!(%failure, "cannot renew a token of Vault");
                self.life.renewal_failed(now, &failure, jitter);
                self.report(Some(format!("the token's renewal failed: {failure}")));
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

struct LoginError {
    message: String,
    is_refused: bool,
    asked: Option<Duration>,
}
