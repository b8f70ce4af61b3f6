//! A task's token of Vault or Consul: the wait for it before the start, its file, and the next tokens.
//!
//! **Invariant**: after the start, no failure of the service ends the task. It keeps its last token, and the
//! attempts go on.

use std::path::PathBuf;
use std::sync::Arc;

use lifecycle::{Event, StartFailure};
use login_provider::{Identity, IdentityError, Keeper, LoginProvider, Setup, State, Token};
use model::{AllocPath, Task};
use task_drivers::TaskDirs;
use task_drivers::driver::BoxFuture;
use tokio::sync::{mpsc, watch};
use workload_identity::cluster_identity;

use super::signer::{Signer, SigningError};
use super::{Attempt, hook};
use crate::identities;
use crate::task_shared::LoginService;

/// A login that the task begins.
pub(super) struct NewLogin<'a> {
    pub(super) service: LoginService,
    pub(super) provider: Arc<dyn LoginProvider>,
    /// The name of the cluster, which names the identity.
    pub(super) cluster: &'a str,
    /// The node's, for an identity that the job does not declare.
    pub(super) audience: &'a [String],
    pub(super) may_expire: bool,
    /// The token that an earlier run of the agent got.
    pub(super) known: Option<Token>,
}

impl Attempt {
    /// Returns the keeper of the task's token; the first call begins the login.
    pub(super) fn login_keeper(&self, task: &Task, login: NewLogin<'_>) -> Arc<Keeper> {
        let name = cluster_identity(login.service.identity(), login.cluster);
        let identity = Signer::new(self, task, name, login.audience);
        self.shared.login(login.service).keeper_or(|| {
            let setup = Setup {
                provider: login.provider,
                identity: Arc::new(identity),
                may_expire: login.may_expire,
                known: login.known,
            };
            Keeper::spawn(setup, self.context.ids.rng())
        })
    }

    /// Waits for the task's first token while no gateway or the service answers.
    pub(super) async fn wait_for_login(
        &self,
        service: LoginService,
        keeper: &Keeper,
        answers: &mpsc::Sender<Event>,
    ) -> Result<State, StartFailure> {
        let name = service.name();
        let mut state = keeper.state();
        let mut told = None;
        loop {
            let now = state.borrow_and_update().clone();
            if now.token.is_some() {
                return Ok(now);
            }
            if now.is_refused {
                self.shared.drop_login(service);
                let problem = now.problem.unwrap_or_default();
                return Err(hook(format!("{name}: {problem}")));
            }
            if now.problem.is_some() && now.problem != told {
                let reason = now.problem.as_deref().unwrap_or_default();
                let message = format!("Waiting for a token of {name}: {reason}");
                self.tell_login(service, answers, message).await;
                told = now.problem;
            }
            tokio::select! {
                changed = state.changed() => changed
                    .map_err(|_| hook(format!("the login to {name} has ended")))?,
                () = self.cancel.cancelled() => {
                    return Err(StartFailure {
                        recoverable: false,
                        ..hook(format!("stopped while waiting for a token of {name}"))
                    });
                }
            }
        }
    }

    /// Waits for a token that the task was not given.
    pub(super) async fn next_token(
        &self,
        service: LoginService,
        state: &mut watch::Receiver<State>,
    ) -> State {
        loop {
            let now = state.borrow_and_update().clone();
            if now.token.is_some() && !self.shared.login(service).is_given(&now) {
                return now;
            }
            if state.changed().await.is_err() {
                // The keeper has ended.
                return std::future::pending().await;
            }
        }
    }

    /// Writes the file with a token.
    pub(super) async fn write_token(
        &self,
        service: LoginService,
        task: &Task,
        state: &State,
    ) -> Result<(), String> {
        let (Some(dirs), Some(token)) = (self.dirs(task), state.token.clone()) else {
            return Ok(());
        };
        let facts = self.facts();
        let env = self.env(&facts).map_err(|failure| failure.message)?;
        let user = self.user(task, env.interpolate(&task.user));
        let user = user.map_err(|failure| failure.message)?;
        let path = token_file(service);
        let written =
            blocking::spawn(move || identities::write_secret(&dirs, &user, &path, token.expose()));
        let written = written.await.unwrap_or_else(|error| Err(error.to_string()));
        written.map_err(|error| format!("the token of {}: {error}", service.name()))
    }

    pub(super) async fn tell_login(
        &self,
        service: LoginService,
        answers: &mpsc::Sender<Event>,
        message: String,
    ) {
        let task = self.id.task.clone();
        let event = match service {
            LoginService::Vault => Event::VaultMessage { task, message },
            LoginService::Consul => Event::ConsulMessage { task, message },
        };
        let _ = answers.send(event).await;
    }
}

/// Reads the token that an earlier run of the agent wrote.
pub(super) async fn known_token(service: LoginService, dirs: TaskDirs) -> Option<Token> {
    let path = token_file(service);
    let file = blocking::spawn(move || identities::read_file(&dirs, &path)).await;
    let known = file.ok().flatten().filter(|text| !text.is_empty());
    known.map(Token::new)
}

fn token_file(service: LoginService) -> AllocPath {
    AllocPath::Task(PathBuf::from(service.file()))
}

impl Identity for Signer {
    fn token(&self) -> BoxFuture<'static, Result<Token, IdentityError>> {
        let signing = self.sign();
        Box::pin(async move {
            match signing.await {
                Ok(token) => Ok(Token::new(token.expose())),
                Err(SigningError::Unavailable(reason)) => Err(IdentityError::Unavailable(reason)),
                Err(SigningError::Refused(reason)) => Err(IdentityError::Refused(reason)),
            }
        })
    }
}
