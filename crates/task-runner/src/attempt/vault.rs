//! A task's token of Vault: before its start, and its changes while it runs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use lifecycle::{Event, StartFailure};
use login_provider::{Keeper, State, Token};
use model::template::ChangeMode;
use model::vault::Vault;
use model::{RestartScope, Task};
use task_drivers::Driver;
use tokio::sync::mpsc;
use tracing::warn;

use super::login::{NewLogin, known_token};
use super::{Attempt, hook, invalid};
use crate::task_shared::LoginService;

const SERVICE: LoginService = LoginService::Vault;

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
        let keeper = self.vault_keeper(task, vault, None)?;
        let state = self.wait_for_login(SERVICE, &keeper, answers).await?;
        let given = self.give_vault_token(task, vault, &state).await;
        given.map_err(hook)?;
        Ok(self.vault_variables(vault, &state))
    }

    /// Finds the token of a task that an earlier run of the agent started; without a file the task gets a new
    /// one.
    pub(super) async fn find_vault_token(&self) {
        let Ok((_, task)) = self.task() else { return };
        let (Some(vault), Some(dirs)) = (&task.vault, self.dirs(task)) else {
            return;
        };
        let known = known_token(SERVICE, dirs).await;
        match self.vault_keeper(task, vault, known) {
            Ok(keeper) => {
                let state = keeper.state().borrow().clone();
                self.shared.login(SERVICE).give(&state);
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
        let (Some(keeper), Ok((_, task))) = (self.shared.login(SERVICE).keeper(), self.task())
        else {
            return std::future::pending().await;
        };
        let Some(vault) = &task.vault else {
            return std::future::pending().await;
        };
        let mut state = keeper.state();
        loop {
            let now = self.next_token(SERVICE, &mut state).await;
            if let Err(problem) = self.give_vault_token(task, vault, &now).await {
                warn!(id = %self.id, problem, "cannot give the task its new token of Vault");
            }
            // The leases of the old token are gone.
            if let Some(watch) = self.shared.watch() {
                watch.refresh();
            }
            self.react_to_token(vault, driver, answers).await;
        }
    }

    /// Returns the keeper of the task's token.
    fn vault_keeper(
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
        let login = NewLogin {
            service: SERVICE,
            provider: node.login(&vault.role, &vault.namespace),
            cluster: &vault.cluster,
            audience: node.audience(),
            may_expire: vault.allow_token_expiration,
            known,
        };
        Ok(self.login_keeper(task, login))
    }

    async fn give_vault_token(
        &self,
        task: &Task,
        vault: &Vault,
        state: &State,
    ) -> Result<(), String> {
        self.shared.login(SERVICE).give(state);
        if vault.disable_file {
            return Ok(());
        }
        self.write_token(SERVICE, task, state).await
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
                self.tell_login(SERVICE, answers, message).await;
            }
            ChangeMode::Noop | ChangeMode::Script => {}
        }
    }
}
