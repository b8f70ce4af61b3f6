//! A task's token of Consul: before its start, and its changes while it runs.
//!
//! **Invariant**: after the start, no failure of Consul ends the task. It keeps its last token, and the
//! attempts go on.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use consul::Token;
use lifecycle::{Event, StartFailure};
use model::consul::Consul;
use model::{AllocPath, Task};
use task_consul::{Identity, IdentityError, Keeper, Node, State};
use task_drivers::driver::BoxFuture;
use tokio::sync::mpsc;
use tracing::warn;
use workload_identity::cluster_identity;

use super::signer::{Signer, SigningError};
use super::{Attempt, hook};
use crate::identities;

/// The file with the token.
const FILE: &str = "secrets/consul_token";

impl Attempt {
    /// Gets the task's token of Consul, if it asks for one and the node's Consul has logins, and writes its
    /// file. Returns the variables. Waits while no gateway or Consul answers.
    pub(super) async fn get_consul_token(
        &self,
        answers: &mpsc::Sender<Event>,
    ) -> Result<BTreeMap<String, String>, StartFailure> {
        let (_, task) = self.task()?;
        // A node without storage simulates its tasks.
        let (Some(node), Some(_)) = (self.consul_logins(task), self.dirs(task)) else {
            return Ok(BTreeMap::new());
        };
        let keeper = self.consul_keeper(task, node, None);
        let mut state = keeper.state();
        let mut told = None;
        loop {
            let now = state.borrow_and_update().clone();
            if now.token.is_some() {
                self.give_consul_token(task, &now).await.map_err(hook)?;
                return Ok(self.consul_variables(task, &now));
            }
            if now.is_refused {
                self.shared.drop_consul_keeper();
                let problem = now.problem.unwrap_or_default();
                return Err(hook(format!("Consul: {problem}")));
            }
            if now.problem.is_some() && now.problem != told {
                let reason = now.problem.as_deref().unwrap_or_default();
                let message = format!("Waiting for a token of Consul: {reason}");
                self.tell_consul(answers, message).await;
                told = now.problem;
            }
            tokio::select! {
                changed = state.changed() => changed
                    .map_err(|_| hook("the login to Consul has ended".to_owned()))?,
                () = self.cancel.cancelled() => {
                    return Err(StartFailure {
                        recoverable: false,
                        ..hook("stopped while waiting for a token of Consul".to_owned())
                    });
                }
            }
        }
    }

    /// Finds the token of a task that an earlier run of the agent started.
    pub(super) async fn find_consul_token(&self) {
        let Ok((_, task)) = self.task() else { return };
        let (Some(node), Some(dirs)) = (self.consul_logins(task), self.dirs(task)) else {
            return;
        };
        let file = blocking::spawn(move || identities::read_file(&dirs, &token_file())).await;
        let known = file.ok().flatten().filter(|text| !text.is_empty());
        let keeper = self.consul_keeper(task, node, known.map(Token::new));
        let state = keeper.state().borrow().clone();
        self.shared.give_consul(state.generation);
        let mut shown = self.shared.shown();
        shown.extend(self.consul_variables(task, &state));
        self.shared.show(&shown);
    }

    /// Gives the task each new token while it runs.
    pub(super) async fn follow_consul(&self, answers: &mpsc::Sender<Event>) -> Infallible {
        let (Some(keeper), Ok((_, task))) = (self.shared.consul_keeper(), self.task()) else {
            return std::future::pending().await;
        };
        let mut state = keeper.state();
        loop {
            let now = state.borrow_and_update().clone();
            if now.token.is_some() && now.generation != self.shared.consul_given() {
                match self.give_consul_token(task, &now).await {
                    Ok(()) => {
                        let message = format!("Consul gave a new token: it is in {FILE}");
                        self.tell_consul(answers, message).await;
                    }
                    Err(problem) => {
                        warn!(id = %self.id, problem, "cannot give the task its new token of Consul");
                    }
                }
                if let Some(watch) = self.shared.watch() {
                    watch.refresh();
                }
            }
            if state.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Returns the block of the task, or of its group.
    pub(super) fn consul_block(&self, task: &Task) -> Option<&Consul> {
        let (group, own) = self.task().ok()?;
        debug_assert_eq!(own.name, task.name, "an attempt has one task");
        own.consul.as_ref().or(group.consul.as_ref())
    }

    /// Returns the node's Consul if the task logs in there: it has a block `consul`, or declares the identity
    /// for logins, and the node has an auth method.
    fn consul_logins(&self, task: &Task) -> Option<&Node> {
        let node = self.context.consul.as_ref()?;
        let name = cluster_identity("consul", Consul::DEFAULT_CLUSTER);
        let asks = self.consul_block(task).is_some()
            || task.identities.iter().any(|identity| identity.name == name);
        (asks && node.has_logins()).then_some(node)
    }

    fn consul_keeper(&self, task: &Task, node: &Node, known: Option<Token>) -> Arc<Keeper> {
        let name = cluster_identity("consul", Consul::DEFAULT_CLUSTER);
        let identity = Arc::new(Signer::new(self, task, name, node.audience()));
        let block = self.consul_block(task);
        let place = block.map_or(("", ""), |block| (&*block.namespace, &*block.partition));
        self.shared.consul_keeper_or(|| {
            let clock = self.context.clocks.wall_clock();
            let setup = node.setup(&task.name, place, identity, known, clock);
            Keeper::spawn(setup, self.context.ids.rng())
        })
    }

    async fn give_consul_token(&self, task: &Task, state: &State) -> Result<(), String> {
        self.shared.give_consul(state.generation);
        let (Some(dirs), Some(token)) = (self.dirs(task), state.token.clone()) else {
            return Ok(());
        };
        let facts = self.facts();
        let user = self
            .env(&facts)
            .map_err(|failure| failure.message)?
            .interpolate(&task.user);
        let written = blocking::spawn(move || {
            identities::write_secret(&dirs, &user, &token_file(), token.expose())
        });
        let written = written.await.unwrap_or_else(|error| Err(error.to_string()));
        written.map_err(|error| format!("the token of Consul: {error}"))
    }

    fn consul_variables(&self, task: &Task, state: &State) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        let Some(token) = &state.token else {
            return variables;
        };
        // Source: both names are those of Nomad's tasks.
        for name in ["CONSUL_TOKEN", "CONSUL_HTTP_TOKEN"] {
            variables.insert(name.to_owned(), token.expose().to_owned());
        }
        let namespace = self.consul_block(task).map(|block| &block.namespace);
        if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) {
            variables.insert("CONSUL_NAMESPACE".to_owned(), namespace.clone());
        }
        variables
    }

    async fn tell_consul(&self, answers: &mpsc::Sender<Event>, message: String) {
        let task = self.id.task.clone();
        let _ = answers.send(Event::ConsulMessage { task, message }).await;
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
