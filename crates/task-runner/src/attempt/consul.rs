//! A task's token of Consul: before its start, and its changes while it runs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use lifecycle::{Event, StartFailure};
use login_provider::{Keeper, State, Token};
use model::Task;
use model::consul::Consul;
use task_consul::Node;
use tokio::sync::mpsc;
use tracing::warn;
use workload_identity::cluster_identity;

use super::login::{NewLogin, known_token};
use super::{Attempt, hook};
use crate::task_shared::LoginService;

const SERVICE: LoginService = LoginService::Consul;

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
        let state = self.wait_for_login(SERVICE, &keeper, answers).await?;
        self.give_consul_token(task, &state).await.map_err(hook)?;
        Ok(self.consul_variables(task, &state))
    }

    /// Finds the token of a task that an earlier run of the agent started.
    pub(super) async fn find_consul_token(&self) {
        let Ok((_, task)) = self.task() else { return };
        let (Some(node), Some(dirs)) = (self.consul_logins(task), self.dirs(task)) else {
            return;
        };
        let keeper = self.consul_keeper(task, node, known_token(SERVICE, dirs).await);
        let state = keeper.state().borrow().clone();
        self.shared.login(SERVICE).give(&state);
        let mut shown = self.shared.shown();
        shown.extend(self.consul_variables(task, &state));
        self.shared.show(&shown);
    }

    /// Gives the task each new token while it runs.
    pub(super) async fn follow_consul(&self, answers: &mpsc::Sender<Event>) -> Infallible {
        let (Some(keeper), Ok((_, task))) = (self.shared.login(SERVICE).keeper(), self.task())
        else {
            return std::future::pending().await;
        };
        let mut state = keeper.state();
        loop {
            let now = self.next_token(SERVICE, &mut state).await;
            match self.give_consul_token(task, &now).await {
                Ok(()) => {
                    let file = SERVICE.file();
                    let message = format!("Consul gave a new token: it is in {file}");
                    self.tell_login(SERVICE, answers, message).await;
                }
                Err(problem) => {
                    warn!(id = %self.id, problem, "cannot give the task its new token of Consul");
                }
            }
            if let Some(watch) = self.shared.watch() {
                watch.refresh();
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
        let block = self.consul_block(task);
        let place = block.map_or(("", ""), |block| (&*block.namespace, &*block.partition));
        let clock = self.context.clocks.wall_clock();
        let login = NewLogin {
            service: SERVICE,
            provider: node.login(&task.name, place, clock),
            cluster: Consul::DEFAULT_CLUSTER,
            audience: node.audience(),
            may_expire: false,
            known,
        };
        self.login_keeper(task, login)
    }

    async fn give_consul_token(&self, task: &Task, state: &State) -> Result<(), String> {
        self.shared.login(SERVICE).give(state);
        self.write_token(SERVICE, task, state).await
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
}
