//! The loop that keeps a task's token: a login before the start, and another one before the token ends.
//!
//! A token of Consul cannot be renewed; its auth method may give it an end (`MaxTokenTTL`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use consul::{AclToken, Client, Failure, Login, Token};
use futures::future::BoxFuture;
use rand::RngExt as _;
use rand::rngs::StdRng;
use service_kit::Clock;
use service_kit::clock::sleep_until_deadline;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use tracing::{Instrument as _, debug, info, warn};

/// First and longest delay after a failure.
const DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// The longest delay after a refused login of a task that runs: an operator has to act.
const LONGEST_REFUSAL_DELAY: Duration = Duration::from_secs(300);
/// A token in doubt is tested this often at most.
const DOUBT_INTERVAL: Duration = Duration::from_secs(30);
/// A token is replaced after this part of its time, and up to a tenth more.
const REPLACED_AFTER: f64 = 0.5;
/// Tries to end a token with its task. Without an answer it ends by itself, if it has an end.
const LOGOUTS: u32 = 4;
/// Delays between them: the files of the allocation are kept meanwhile.
const LOGOUT_DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

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
    pub(crate) client: Client,
    pub(crate) auth_method: String,
    pub(crate) task: String,
    pub(crate) namespace: String,
    pub(crate) partition: String,
    pub(crate) identity: Arc<dyn Identity>,
    /// The token that an earlier run of the node's agent got.
    pub(crate) known: Option<Token>,
    /// Tells the time that a token's end is compared with.
    pub(crate) clock: Clock,
}

/// The token at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub token: Option<Token>,
    /// Number of logins that gave a token, a restored one included.
    pub generation: u64,
    /// The reason of the last failure, `None` after a success. It has no secrets.
    pub problem: Option<String>,
    /// Consul or the gateway refuses the first login: a retry alone does not help.
    pub is_refused: bool,
}

/// A token that is kept until the keeper is dropped.
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
    /// Begins with a login, or with a test of the known token. `rng` spreads logins and retries.
    pub fn spawn(setup: Setup, rng: StdRng) -> Self {
        let client = setup.client.clone();
        let doubts = Arc::new(Notify::new());
        let (sender, state) = watch::channel(State {
            generation: u64::from(setup.known.is_some()),
            token: setup.known.clone(),
            ..State::default()
        });
        let run = Run {
            setup,
            state: sender,
            rng,
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

    /// Ends the logins, and the token. Tries a few times.
    pub fn log_out(&self) -> impl Future<Output = ()> + Send + use<> {
        self.running.abort();
        let (client, token) = (self.client.clone(), self.state.borrow().token.clone());
        async move {
            let Some(token) = token else { return };
            for failures in 1..=LOGOUTS {
                match client.log_out(&token).await {
                    Ok(()) => {
                        debug!("logged out of Consul");
                        return;
                    }
                    Err(failure) if failure.is_transient() && failures < LOGOUTS => {
                        sleep(backoff::delay(LOGOUT_DELAYS, failures, 0.0)).await;
                    }
                    // It has ended already.
                    Err(Failure::Forbidden { .. }) => return,
                    Err(failure) => {
                        warn!(%failure, "a token of Consul is not ended; it ends at its expiration");
                        return;
                    }
                }
            }
        }
    }
}

struct Run {
    setup: Setup,
    state: watch::Sender<State>,
    rng: StdRng,
    doubts: Arc<Notify>,
}

impl Run {
    async fn run(mut self) {
        // `None`: the token has no end; `Some`: when it is replaced.
        let mut replaced_at = match self.setup.known.clone() {
            Some(known) => self.test(&known).await,
            None => self.log_in().await,
        };
        let mut tested = Instant::now();
        loop {
            tokio::select! {
                () = sleep_until_deadline(replaced_at) => replaced_at = self.log_in().await,
                () = self.doubts.notified() => {
                    if tested.elapsed() < DOUBT_INTERVAL {
                        continue;
                    }
                    tested = Instant::now();
                    let token = self.state.borrow().token.clone();
                    if let Some(token) = token {
                        replaced_at = self.test(&token).await;
                    }
                }
            }
        }
    }

    /// Tests a token, and logs in if it has ended. Returns when it is replaced.
    async fn test(&mut self, token: &Token) -> Option<Instant> {
        let mut failures = 0;
        loop {
            match self.setup.client.token_self(token).await {
                Ok(known) => return self.replaced_at(&known),
                Err(failure) if failure.is_transient() => {
                    failures += 1;
                    self.report(Some(failure.to_string()));
                    sleep(backoff::delay(DELAYS, failures, self.rng.random())).await;
                }
                Err(_) => return self.log_in().await,
            }
        }
    }

    /// Logs in; retries until it succeeds. Returns when the token is replaced.
    async fn log_in(&mut self) -> Option<Instant> {
        let mut failures = 0;
        loop {
            match self.try_login().await {
                Ok(token) => {
                    info!(accessor = token.accessor, "logged in to Consul");
                    let at = self.replaced_at(&token);
                    self.state.send_modify(|state| {
                        state.generation += 1;
                        state.token = Some(token.secret);
                        state.problem = None;
                        state.is_refused = false;
                    });
                    return at;
                }
                Err((message, is_refused)) => {
                    failures += 1;
                    warn!(error = message, "cannot log in to Consul");
                    self.state.send_if_modified(|state| {
                        let before = state.clone();
                        state.is_refused = is_refused && state.generation == 0;
                        state.problem = Some(message);
                        *state != before
                    });
                    let longest = if is_refused {
                        LONGEST_REFUSAL_DELAY
                    } else {
                        DELAYS.1
                    };
                    let delays = (DELAYS.0, longest);
                    sleep(backoff::delay(delays, failures, self.rng.random())).await;
                }
            }
        }
    }

    async fn try_login(&self) -> Result<AclToken, (String, bool)> {
        let setup = &self.setup;
        let jwt = setup.identity.token().await.map_err(|error| match error {
            IdentityError::Unavailable(message) => (message, false),
            IdentityError::Refused(message) => (message, true),
        })?;
        let login = Login {
            auth_method: setup.auth_method.clone(),
            jwt,
            meta: BTreeMap::from([(
                "requested_by".to_owned(),
                format!("nomad_task_{}", setup.task),
            )]),
            namespace: setup.namespace.clone(),
            partition: setup.partition.clone(),
        };
        setup.client.log_in(&login).await.map_err(|failure| {
            let message = format!(
                "the login with the auth method {:?} failed: {failure}",
                setup.auth_method
            );
            (message, !failure.is_transient())
        })
    }

    /// Returns when a token is replaced; `None`: it has no end.
    fn replaced_at(&mut self, token: &AclToken) -> Option<Instant> {
        let end: jiff::Timestamp = token.expiration_time.as_ref()?.parse().ok()?;
        let end = Duration::try_from(end.duration_since(jiff::Timestamp::UNIX_EPOCH)).ok()?;
        let left = end.saturating_sub(Duration::from_nanos(self.setup.clock.now()));
        let share = REPLACED_AFTER + 0.1 * self.rng.random::<f64>();
        Some(Instant::now() + left.mul_f64(share).max(DELAYS.0))
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
