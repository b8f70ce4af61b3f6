//! Vault as the tasks of a node share it: client and settings.

use std::sync::Arc;
use std::time::Duration;

use login_provider::LoginProvider;
use vault::{Client, VaultConfig};

use crate::login::VaultLogin;

/// The node's Vault.
#[derive(Clone, Debug)]
pub struct Node {
    client: Client,
    auth_path: String,
    default_role: String,
    audience: Vec<String>,
    poll_interval: Duration,
}

impl Node {
    pub fn new(client: Client, config: &VaultConfig) -> Self {
        Self {
            client,
            auth_path: config.jwt_auth_path.clone(),
            default_role: config.default_role.clone(),
            audience: config.audience.clone(),
            poll_interval: config.poll_interval,
        }
    }

    /// The client in the node's namespace.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The audiences of the JWTs.
    pub fn audience(&self) -> &[String] {
        &self.audience
    }

    pub(crate) fn poll_interval(&self) -> Duration {
        self.poll_interval
    }

    /// The namespace of a task that asks for `namespace`; empty: the root namespace.
    pub fn namespace(&self, namespace: &str) -> String {
        self.client.in_namespace(namespace).namespace().to_owned()
    }

    /// The logins of a task; empty texts are the node's defaults.
    pub fn login(&self, role: &str, namespace: &str) -> Arc<dyn LoginProvider> {
        let role = if role.is_empty() {
            self.default_role.as_str()
        } else {
            role
        };
        Arc::new(VaultLogin {
            client: self.client.in_namespace(namespace),
            path: self.auth_path.clone(),
            role: role.to_owned(),
        })
    }
}
