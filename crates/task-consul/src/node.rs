//! Consul as the tasks of a node share it: client, queries and settings.

use std::sync::Arc;

use consul::{Client, ConsulConfig, Token};
use service_kit::Clock;

use crate::keeper::{Identity, Setup};
use crate::look_ups::LookUps;
use crate::probe::Probe;

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

    /// A probe of the node's attributes, without an answer yet.
    pub fn probe(&self) -> Probe {
        Probe::new(self.client.clone())
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

    /// The way of a task to its token; empty texts are the node's defaults.
    pub fn setup(
        &self,
        task: &str,
        (namespace, partition): (&str, &str),
        identity: Arc<dyn Identity>,
        known: Option<Token>,
        clock: Clock,
    ) -> Setup {
        let or = |own: &str, default: &str| if own.is_empty() { default } else { own }.to_owned();
        Setup {
            client: self.client.clone(),
            auth_method: self.config.task_auth_method.clone(),
            task: task.to_owned(),
            namespace: or(namespace, &self.config.namespace),
            partition: or(partition, &self.config.partition),
            identity,
            known,
            clock,
        }
    }
}
