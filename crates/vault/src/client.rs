//! The client: one method per operation of Vault's API.

use std::sync::Arc;

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tls::{Clients, Connector, Credentials, Expect, ServerName, Verify};
use tokio::sync::Semaphore;

use crate::auth::{self, Auth};
use crate::config::VaultConfig;
use crate::failure::Failure;
use crate::http::{Answer, Call, Transport};
use crate::kv::Mount;
use crate::secret::Secret;
use crate::token::Token;
use crate::url::{self, Server};

/// Statuses with which `sys/health` reports a server that is up, whatever its state.
const HEALTH: &str =
    "standbyok=true&perfstandbyok=true&drsecondarycode=299&sealedcode=299&uninitcode=299";

/// A client of one Vault, in one namespace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Arc<Transport>,
    namespace: Arc<str>,
}

/// A login of a task.
#[derive(Clone, Debug)]
pub struct Login {
    /// The path of the JWT auth method, as in `jwt-nomad`.
    pub path: String,
    /// Empty: the method's default role.
    pub role: String,
    pub jwt: Token,
}

/// The state of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Health {
    pub initialized: bool,
    pub sealed: bool,
    pub standby: bool,
    /// As in `1.15.2` or `1.15.2+ent`.
    pub version: String,
    pub cluster_id: String,
    pub cluster_name: String,
}

impl Client {
    /// Prepares access to Vault; the certificates are read, nothing is sent.
    ///
    /// # Errors
    /// The setting that is wrong, without its section, and the problem with its fix.
    pub fn open(config: &VaultConfig) -> Result<Self, (&'static str, String)> {
        let server = Server::parse(&config.address).map_err(|problem| ("address", problem))?;
        let connector = server.is_https.then(|| connector(config)).transpose()?;
        let transport = Transport {
            server,
            connector,
            timeout: config.timeout,
            permits: Semaphore::new(config.max_requests.max(1)),
        };
        Ok(Self {
            transport: Arc::new(transport),
            namespace: config.namespace.as_str().into(),
        })
    }

    /// The client for another namespace of the same Vault; empty: this one's.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        let mut client = self.clone();
        if !namespace.is_empty() {
            client.namespace = namespace.into();
        }
        client
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Reads the state of the server; it needs no token.
    ///
    /// # Errors
    /// The server does not answer, or is no Vault.
    pub async fn health(&self) -> Result<Health, Failure> {
        let answer = self.send(Method::GET, ("sys/health", HEALTH), None, None, "").await?;
        let health: Health = parse(&answer)?;
        if health.version.is_empty() {
            let problem = "it has no version".to_owned();
            return Err(Failure::NoVault { problem });
        }
        Ok(health)
    }

    /// Exchanges a JWT for a token.
    ///
    /// # Errors
    /// Vault does not answer, or refuses the JWT or the role.
    pub async fn log_in(&self, login: &Login) -> Result<Auth, Failure> {
        let path = format!("auth/{}/login", login.path.trim_matches('/'));
        let mut body = json!({ "jwt": login.jwt.expose() });
        if !login.role.is_empty() {
            body["role"] = login.role.as_str().into();
        }
        let hidden = [login.jwt.expose()];
        let sent = self.send(Method::POST, (&path, ""), None, Some(&body), &self.namespace).await;
        let answer = sent.map_err(|failure| failure.without(&hidden))?;
        auth::read(&answer.body).map_err(|problem| Failure::NoVault { problem })
    }

    /// Extends the life of a token.
    ///
    /// # Errors
    /// Vault does not answer, or the token has ended or cannot be renewed.
    pub async fn renew_self(&self, token: &Token) -> Result<Auth, Failure> {
        let answer = self.post("auth/token/renew-self", token, &json!({})).await?;
        auth::read(&answer.body).map_err(|problem| Failure::NoVault { problem })
    }

    /// Ends a token, with all leases that it has.
    ///
    /// # Errors
    /// Vault does not answer, or the token has ended.
    pub async fn revoke_self(&self, token: &Token) -> Result<(), Failure> {
        self.post("auth/token/revoke-self", token, &json!({})).await.map(drop)
    }

    /// Reads `path` of the API, in the given version of the secret if there is one.
    ///
    /// # Errors
    /// Vault does not answer or refuses, or nothing is there ([`Failure::Absent`]).
    pub async fn read(
        &self,
        path: &str,
        version: Option<u64>,
        token: &Token,
    ) -> Result<Secret, Failure> {
        let query = version.map(|version| format!("version={version}"));
        self.get(path, query.as_deref().unwrap_or_default(), token).await
    }

    /// Lists the names below `path`.
    ///
    /// # Errors
    /// As those of [`Self::read`].
    pub async fn list(&self, path: &str, token: &Token) -> Result<Secret, Failure> {
        self.get(path, "list=true", token).await
    }

    /// Writes `data`, an object, and returns the answer; that of an engine without one is empty.
    ///
    /// # Errors
    /// Vault does not answer or refuses. Errors have none of the data's texts.
    pub async fn write(&self, path: &str, data: &Value, token: &Token) -> Result<Secret, Failure> {
        let answer = self.post(path, token, data).await?;
        Secret::read(&answer.body).map_err(|problem| Failure::NoVault { problem })
    }

    /// Extends a lease; the answer has its new length and no data.
    ///
    /// # Errors
    /// Vault does not answer, or the lease has ended or cannot be renewed.
    pub async fn renew_lease(&self, lease_id: &str, token: &Token) -> Result<Secret, Failure> {
        let body = json!({ "lease_id": lease_id });
        let answer = self.post("sys/leases/renew", token, &body).await?;
        Secret::read(&answer.body).map_err(|problem| Failure::NoVault { problem })
    }

    /// Looks the mount of a path up, as far as the token may see it.
    ///
    /// # Errors
    /// Vault does not answer, or the token has no right below the mount.
    pub async fn mount(&self, path: &str, token: &Token) -> Result<Mount, Failure> {
        let path = format!("sys/internal/ui/mounts/{}", path.trim_matches('/'));
        let secret = self.get(&path, "", token).await?;
        Mount::read(&secret.data).ok_or_else(|| Failure::NoVault {
            problem: "its mount has no path".to_owned(),
        })
    }

    async fn get(&self, path: &str, query: &str, token: &Token) -> Result<Secret, Failure> {
        let sent = self.send(Method::GET, (path, query), Some(token), None, &self.namespace).await;
        let answer = sent.map_err(|failure| failure.without(&[token.expose()]))?;
        Secret::read(&answer.body).map_err(|problem| Failure::NoVault { problem })
    }

    async fn post(&self, path: &str, token: &Token, body: &Value) -> Result<Answer, Failure> {
        let sent =
            self.send(Method::POST, (path, ""), Some(token), Some(body), &self.namespace).await;
        sent.map_err(|failure| {
            let mut hidden = vec![token.expose()];
            texts(body, &mut hidden);
            failure.without(&hidden)
        })
    }

    async fn send(
        &self,
        method: Method,
        (path, query): (&str, &str),
        token: Option<&Token>,
        body: Option<&Value>,
        namespace: &str,
    ) -> Result<Answer, Failure> {
        let target = url::target(&self.transport.server.prefix, path, query)
            .map_err(|problem| Failure::Request { problem })?;
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let call = Call { method, target, token, namespace, body };
        self.transport.send(call).await
    }
}

fn parse<'a, T: Deserialize<'a>>(answer: &'a Answer) -> Result<T, Failure> {
    serde_json::from_slice(&answer.body).map_err(|_| Failure::NoVault {
        problem: format!("status {}, and its JSON has another form", answer.status),
    })
}

/// All texts of a value.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(items) => items.values().for_each(|item| texts(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn connector(config: &VaultConfig) -> Result<Connector, (&'static str, String)> {
    let expect = match config.tls_server_name.as_str() {
        "" => Expect::Host,
        name => Expect::Name(ServerName::try_from(name.to_owned()).map_err(|error| {
            ("tls_server_name", format!("{name:?}: {error}; want a DNS name"))
        })?),
    };
    let verify = if config.tls_skip_verify { Verify::Nothing } else { Verify::Servers };
    let credentials =
        Credentials::load_with("vault", config.files(), verify, Clients::Certified, |_| Ok(()))
            .map_err(|error| {
                let field = if config.ca_file.is_some() { "ca_file" } else { "cert_file" };
                (field, service_kit::run::chain(&error))
            })?;
    Ok(Connector::new(credentials, expect).for_http1())
}
