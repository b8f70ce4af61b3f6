//! Consul as the tasks of a node share it: client, queries and settings.

use std::sync::Arc;

use consul::{Client, ConsulConfig};
use login_provider::LoginProvider;
use service_kit::Clock;

use crate::login::ConsulLogin;
use crate::look_ups::LookUps;

/// The node's Consul. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Node {
    client: Client,
    look_ups: LookUps,
    config: Arc<ConsulConfig>,
}

impl Node {
    pub fn new(client: Client, config: &ConsulConfig) -> Self {
        Self {
            look_ups: LookUps::new(client.clone()),
            client,
            config: Arc::new(config.clone()),
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn look_ups(&self) -> &LookUps {
        &self.look_ups
    }

    /// Returns whether tasks log in with their identity.
    pub fn has_logins(&self) -> bool {
        !self.config.task_auth_method.is_empty()
    }

    /// The audiences of the JWTs.
    pub fn audience(&self) -> &[String] {
        &self.config.audience
    }

    /// The logins of a task; empty texts are the node's defaults.
    pub fn login(
        &self,
        task: &str,
        (namespace, partition): (&str, &str),
        clock: Clock,
    ) -> Arc<dyn LoginProvider> {
        let or = |own: &str, default: &str| if own.is_empty() { default } else { own }.to_owned();
        Arc::new(ConsulLogin {
            client: self.client.clone(),
            auth_method: self.config.task_auth_method.clone(),
            task: task.to_owned(),
            namespace: or(namespace, &self.config.namespace),
            partition: or(partition, &self.config.partition),
            clock,
        })
    }
}
