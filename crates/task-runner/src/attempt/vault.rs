//! A task's token of Vault: before its start, and its changes while it runs.
//!
//! **Invariant**: after the start, no failure of Vault ends the task. It keeps its last token, and the
//! attempts go on.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use lifecycle::{Event, RestartScope, StartFailure};
use model::template::ChangeMode;
use model::vault::Vault;
use model::{AllocPath, Task};
use task_drivers::Driver;
use task_drivers::driver::BoxFuture;
use task_vault::{Identity, IdentityError, Keeper, State};
use tokio::sync::mpsc;
use tracing::warn;
use vault::Token;
use workload_identity::cluster_identity;

use super::signer::{Signer, SigningError};
use super::{Attempt, hook, invalid};
use crate::identities;

/// The file with the token.
const FILE: &str = "secrets/vault_token";

impl Attempt {
    /// Gets the task's token of Vault, if it has a vault block, and writes its file. Returns the variables.
    /// Waits while no gateway or Vault answers.
    pub(super) async fn get_vault_token(
        &self,
        answers: &mpsc::Sender<Event>,
    ) -> Result<BTreeMap<String, String>, StartFailure> {
        let (_, task) = self.task()?;
        // A node without storage simulates its tasks.
        let (Some(vault), Some(_)) = (&task.vault, self.dirs(task)) else {
            return Ok(BTreeMap::new());
        };
        let keeper = self.keeper(task, vault, None)?;
        let mut state = keeper.state();
        let mut told = None;
        loop {
            let now = state.borrow_and_update().clone();
            if now.token.is_some() {
                self.give_token(task, vault, &now).await.map_err(hook)?;
                return Ok(self.vault_variables(vault, &now));
            }
            if now.is_refused {
                self.shared.drop_keeper();
                return Err(hook(format!("Vault: {}", now.problem.unwrap_or_default())));
            }
            if now.problem.is_some() && now.problem != told {
                let reason = now.problem.as_deref().unwrap_or_default();
                self.tell_vault(answers, format!("Waiting for a token of Vault: {reason}"))
                    .await;
                told = now.problem;
            }
            tokio::select! {
                changed = state.changed() => changed
                    .map_err(|_| hook("the login to Vault has ended".to_owned()))?,
                () = self.cancel.cancelled() => {
                    return Err(StartFailure {
                        recoverable: false,
                        ..hook("stopped while waiting for a token of Vault".to_owned())
                    });
                }
            }
        }
    }

    /// Finds the token of a task that an earlier run of the agent started; without a file the task gets a new
    /// one.
    pub(super) async fn find_vault_token(&self) {
        let Ok((_, task)) = self.task() else { return };
        let (Some(vault), Some(dirs)) = (&task.vault, self.dirs(task)) else {
            return;
        };
        let file = blocking::spawn(move || identities::read_file(&dirs, &token_file())).await;
        let known = file.ok().flatten().filter(|text| !text.is_empty());
        match self.keeper(task, vault, known.map(Token::new)) {
            Ok(keeper) => {
                let state = keeper.state().borrow().clone();
                self.shared.give(state.generation);
                // The tokens of other identities are not known any more.
                self.shared.show(&self.vault_variables(vault, &state));
            }
            Err(failure) => warn!(id = %self.id, reason = failure.message, "no token of Vault"),
        }
    }

    /// Gives the task each new token while it runs.
    pub(super) async fn follow_vault(
        &self,
        driver: &dyn Driver,
        answers: &mpsc::Sender<Event>,
    ) -> Infallible {
        let (Some(keeper), Ok((_, task))) = (self.shared.keeper(), self.task()) else {
            return std::future::pending().await;
        };
        let Some(vault) = &task.vault else {
            return std::future::pending().await;
        };
        let mut state = keeper.state();
        loop {
            let now = state.borrow_and_update().clone();
            if now.token.is_some() && now.generation != self.shared.given() {
                if let Err(problem) = self.give_token(task, vault, &now).await {
                    warn!(id = %self.id, problem, "cannot give the task its new token of Vault");
                }
                // The leases of the old token are gone.
                if let Some(watch) = self.shared.watch() {
                    watch.refresh();
                }
                self.react_to_token(vault, driver, answers).await;
            }
            if state.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Returns the keeper of the task's token.
    fn keeper(
        &self,
        task: &Task,
        vault: &Vault,
        known: Option<Token>,
    ) -> Result<Arc<Keeper>, StartFailure> {
        if vault.cluster != Vault::DEFAULT_CLUSTER {
            return Err(invalid(format!(
                "vault.cluster {:?} is not known on this node: use \"default\"",
                vault.cluster
            )));
        }
        let Some(node) = &self.context.vault else {
            let problem =
                "this node has no Vault: set vault.enabled and vault.address in its configuration";
            return Err(hook(problem.to_owned()));
        };
        let name = cluster_identity("vault", &vault.cluster);
        let identity = Signer::new(self, task, name, node.audience());
        Ok(self.shared.keeper_or(|| {
            let may_expire = vault.allow_token_expiration;
            let (role, namespace) = (vault.role.as_str(), vault.namespace.as_str());
            let setup = node.setup(role, namespace, may_expire, Arc::new(identity), known);
            Keeper::spawn(setup, self.context.ids.rng())
        }))
    }

    async fn give_token(&self, task: &Task, vault: &Vault, state: &State) -> Result<(), String> {
        self.shared.give(state.generation);
        let (Some(dirs), Some(token)) = (self.dirs(task), state.token.clone()) else {
            return Ok(());
        };
        if vault.disable_file {
            return Ok(());
        }
        let facts = self.facts();
        let user = self
            .env(&facts)
            .map_err(|failure| failure.message)?
            .interpolate(&task.user);
        let written = blocking::spawn(move || {
            identities::write_secret(&dirs, &user, &token_file(), token.expose())
        });
        let written = written.await.unwrap_or_else(|error| Err(error.to_string()));
        written.map_err(|error| format!("the token of Vault: {error}"))
    }

    fn vault_variables(&self, vault: &Vault, state: &State) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        let (true, Some(token), Some(node)) = (vault.env, &state.token, &self.context.vault) else {
            return variables;
        };
        variables.insert("VAULT_TOKEN".to_owned(), token.expose().to_owned());
        let namespace = node.namespace(&vault.namespace);
        if !namespace.is_empty() {
            variables.insert("VAULT_NAMESPACE".to_owned(), namespace);
        }
        variables
    }

    async fn react_to_token(
        &self,
        vault: &Vault,
        driver: &dyn Driver,
        answers: &mpsc::Sender<Event>,
    ) {
        // A task that does not see the token has no use for a reaction.
        let mode = if vault.disable_file && !vault.env {
            ChangeMode::Noop
        } else {
            vault.change_mode
        };
        match mode {
            ChangeMode::Restart => {
                let scope = RestartScope::Task(self.id.task.clone());
                let reason = "Vault gave a new token".to_owned();
                let _ = answers.send(Event::Restart { scope, reason }).await;
            }
            ChangeMode::Signal => {
                let signal = &vault.change_signal;
                let message = match driver.signal(&self.id, signal).await {
                    Ok(()) => format!("Vault gave a new token: sent {signal}"),
                    Err(error) => format!(
                        "Vault gave a new token, but {signal} could not be sent: {}",
                        service_kit::run::chain(&error)
                    ),
                };
                self.tell_vault(answers, message).await;
            }
            ChangeMode::Noop | ChangeMode::Script => {}
        }
    }

    async fn tell_vault(&self, answers: &mpsc::Sender<Event>, message: String) {
        let task = self.id.task.clone();
        let _ = answers.send(Event::VaultMessage { task, message }).await;
    }
}

fn token_file() -> AllocPath {
    AllocPath::Task(PathBuf::from(FILE))
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
