//! Renewal of a running task's tokens: files are replaced, then the task is restarted or signalled as its
//! identities say.
//!
//! **Invariant**: a failed renewal changes nothing about the task. It keeps its last token, and the
//! attempts go on.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use lifecycle::Event;
use model::{RestartScope, Timestamp};
use rand::{Rng, RngExt as _};
use service_kit::Backoff;
use task_drivers::{Driver, TaskDirs, TaskId};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{info, warn};
use workload_identity::renewal::times_of;
use workload_identity::{SignedToken, renewal_at};

use super::{Change, Identity, TaskUser, read_file, requests, write_files};
use crate::context::Context;
use crate::token_source::TokenError;

/// Shortest and longest pause after a failed renewal: half of a token's life is left for them.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// The pause after a refusal, which a change of the job or of the gateways ends.
const REFUSED_PAUSE: Duration = Duration::from_secs(600);
/// Interval of looks at the wall clock, which may step.
const LOOK_INTERVAL: Duration = Duration::from_secs(600);

/// An identity and the time of its renewal.
#[derive(Clone, Debug)]
pub(crate) struct RenewedIdentity {
    pub(crate) identity: Identity,
    due: Timestamp,
    /// False after a restart of the agent, which does not know the token of a variable: the first new
    /// token causes no reaction.
    is_known: bool,
}

impl RenewedIdentity {
    /// An identity whose token the task has just got.
    pub(crate) fn fresh(identity: &Identity, signed: &SignedToken, rng: &mut impl Rng) -> Self {
        Self {
            identity: identity.clone(),
            due: renewal_at(signed.issued_at, signed.expires_at, rng.random()),
            is_known: true,
        }
    }

    /// An identity of a task that an earlier run of the agent started: its file tells the times. Blocks.
    pub(crate) fn found(identity: &Identity, dirs: &TaskDirs, rng: &mut impl Rng) -> Self {
        let text = identity
            .file
            .as_ref()
            .and_then(|path| read_file(dirs, path));
        let times = text.and_then(|text| times_of(&text));
        Self {
            identity: identity.clone(),
            due: times.map_or(Timestamp::NEVER, |(issued_at, expires_at)| {
                renewal_at(issued_at, expires_at, rng.random())
            }),
            is_known: times.is_some(),
        }
    }

    /// A variable of a running process cannot change: without a reaction its renewal has no effect.
    fn is_renewed(&self) -> bool {
        self.identity.file.is_some() || self.identity.change != Change::Noop
    }
}

/// The renewals of one task.
pub(crate) struct Renewal<'a> {
    pub(crate) context: &'a Arc<Context>,
    pub(crate) id: &'a TaskId,
    pub(crate) dirs: TaskDirs,
    pub(crate) user: TaskUser,
    pub(crate) driver: &'a dyn Driver,
    pub(crate) answers: &'a mpsc::Sender<Event>,
}

impl Renewal<'_> {
    /// Renews the tokens for as long as the task runs.
    pub(crate) async fn run(self, mut held: Vec<RenewedIdentity>) -> Infallible {
        held.retain(RenewedIdentity::is_renewed);
        let mut rng = self.context.ids.rng();
        let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1);
        loop {
            let Some(next) = held.iter().map(|one| one.due).min() else {
                return std::future::pending().await;
            };
            let wait = next.since(self.context.clocks.wall());
            if wait > Duration::ZERO {
                sleep(wait.min(LOOK_INTERVAL)).await;
                continue;
            }
            match self.renew(&mut held, &mut rng).await {
                Ok(()) => backoff.reset(),
                Err(error) => {
                    self.context.metrics.identity_renewal_failures.inc();
                    let (id, task) = (self.id, &self.id.task);
                    let reason = error.to_string();
                    warn!(%id, task, reason, "cannot renew the task's identity tokens; retrying");
                    sleep(match error {
                        TokenError::Unavailable(_) => backoff.next(&mut rng),
                        TokenError::Refused(_) => REFUSED_PAUSE,
                    })
                    .await;
                }
            }
        }
    }

    async fn renew(
        &self,
        held: &mut [RenewedIdentity],
        rng: &mut impl Rng,
    ) -> Result<(), TokenError> {
        let now = self.context.clocks.wall();
        let due: Vec<usize> = (0..held.len())
            .filter(|position| held[*position].due <= now)
            .collect();
        let identities: Vec<Identity> = due
            .iter()
            .map(|position| held[*position].identity.clone())
            .collect();
        let requests = requests(self.id.alloc_id, &self.id.task, &identities);
        let signed = self.context.tokens.sign(requests).await?;
        if signed.len() != identities.len() {
            let problem = "the gateway sent another number of tokens";
            return Err(TokenError::Unavailable(problem.to_owned()));
        }
        let (dirs, user) = (self.dirs.clone(), self.user.clone());
        let tokens = signed.clone();
        let written = blocking::spawn(move || {
            write_files(&dirs, &user, identities.iter().zip(tokens.iter()))
        });
        let written = written.await.unwrap_or_else(|error| Err(error.to_string()));
        written.map_err(TokenError::Unavailable)?;
        let mut changes = Vec::new();
        for (position, signed) in due.into_iter().zip(&signed) {
            let one = &mut held[position];
            if one.is_known {
                changes.push((one.identity.name.clone(), one.identity.change.clone()));
            }
            *one = RenewedIdentity::fresh(&one.identity, signed, rng);
        }
        self.context.metrics.identity_renewals.inc();
        info!(id = %self.id, count = signed.len(), "identity tokens of the task renewed");
        self.react(changes).await;
        Ok(())
    }

    /// Restarts the task once, or sends it each signal once.
    async fn react(&self, changes: Vec<(String, Change)>) {
        let task = self.id.task.clone();
        if let Some((name, _)) = changes
            .iter()
            .find(|(_, change)| *change == Change::Restart)
        {
            let scope = RestartScope::Task(task);
            let reason = format!("Identity {name:?} has a new token");
            let _ = self.answers.send(Event::Restart { scope, reason }).await;
            return;
        }
        let mut sent = Vec::new();
        for (name, change) in changes {
            let Change::Signal(signal) = change else {
                continue;
            };
            if sent.contains(&signal) {
                continue;
            }
            let message = match self.driver.signal(self.id, &signal).await {
                Ok(()) => format!("Identity {name:?} has a new token: sent {signal}"),
                Err(error) => format!(
                    "Identity {name:?} has a new token, but {signal} could not be sent: {}",
                    service_kit::run::chain(&error)
                ),
            };
            let task = task.clone();
            let event = Event::IdentityMessage { task, message };
            let _ = self.answers.send(event).await;
            sent.push(signal);
        }
    }
}
