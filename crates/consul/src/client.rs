//! The client: one method per operation of Consul's API.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use hyper::Method;
use serde::de::DeserializeOwned;
use serde_json::json;
use tls::{Clients, Connector, Credentials, Expect, ServerName, Verify};
use tokio::sync::Semaphore;

use crate::acl::AclToken;
use crate::agent::{AgentCheck, AgentSelf, AgentService, CheckState, CheckUpdate, Registration};
use crate::blocking::{Found, WAIT, Wait};
use crate::catalog::{Node, NodeServices, ServiceEntry};
use crate::config::ConsulConfig;
use crate::failure::Failure;
use crate::http::{Answer, Call, Transport};
use crate::kv::KvPair;
use crate::token::Token;
use crate::url::Target;

/// A client of one agent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Arc<Transport>,
    config: Arc<ConsulConfig>,
    /// The node's token.
    token: Arc<RwLock<Token>>,
}

/// The place of a look-up, and its token. Empty texts: the agent's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    pub datacenter: String,
    pub namespace: String,
    pub partition: String,
    /// Sort by the distance from this node; `_agent`: from the agent.
    pub near: String,
    /// Empty: the node's.
    pub token: Token,
}

/// A login of a task.
#[derive(Clone, Debug)]
pub struct Login {
    pub auth_method: String,
    pub jwt: Token,
    /// Kept with the token in Consul.
    pub meta: BTreeMap<String, String>,
    pub namespace: String,
    pub partition: String,
}

impl Client {
    /// Prepares access to an agent; certificates and token are read, nothing is sent. Blocks.
    ///
    /// # Errors
    /// The setting that is wrong, without its section, and the problem with its fix.
    pub fn open(config: &ConsulConfig) -> Result<Self, (&'static str, String)> {
        let server = config.server()?;
        let connector = server.is_https.then(|| connector(config)).transpose()?;
        let token = config.read_token()?;
        let transport = Transport {
            server,
            connector,
            timeout: config.timeout,
            permits: Semaphore::new(config.max_requests.max(1)),
        };
        Ok(Self {
            transport: Arc::new(transport),
            config: Arc::new(config.clone()),
            token: Arc::new(RwLock::new(token)),
        })
    }

    /// Reads the file with the node's token again; keeps the last token if there is none. Blocks.
    ///
    /// # Errors
    /// The file cannot be read, or is empty.
    pub fn reload_token(&self) -> Result<(), String> {
        let token = self.config.read_token().map_err(|(_, problem)| problem)?;
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = token;
        Ok(())
    }

    /// Reads version, datacenter and other facts of the agent.
    ///
    /// # Errors
    /// It does not answer, or is no agent of Consul.
    pub async fn agent_self(&self) -> Result<AgentSelf, Failure> {
        let found: AgentSelf = self.get(Target::new("agent/self", ""), None).await?;
        if found.config.version.is_empty() {
            let problem = "it has no version".to_owned();
            return Err(Failure::NoConsul { problem });
        }
        Ok(found)
    }

    /// Lists the services of the agent, by id.
    ///
    /// # Errors
    /// It does not answer, or denies the request.
    pub async fn agent_services(&self) -> Result<BTreeMap<String, AgentService>, Failure> {
        self.get(Target::new("agent/services", ""), None).await
    }

    /// Lists the checks of the agent, by id.
    ///
    /// # Errors
    /// It does not answer, or denies the request.
    pub async fn agent_checks(&self) -> Result<BTreeMap<String, AgentCheck>, Failure> {
        self.get(Target::new("agent/checks", ""), None).await
    }

    /// Registers a service with its checks, in place of one with the same id and of its checks.
    ///
    /// # Errors
    /// The agent does not answer, or refuses the service.
    pub async fn register(&self, service: &Registration) -> Result<(), Failure> {
        let target = Target::new("agent/service/register", "")
            .map(|target| target.with("replace-existing-checks", "true"));
        self.put(target, serde_json::to_vec(service)).await
    }

    /// Deregisters a service with its checks; one that does not exist is none any more.
    ///
    /// # Errors
    /// The agent does not answer, or denies the request.
    pub async fn deregister(&self, id: &str) -> Result<(), Failure> {
        let target = Target::new("agent/service/deregister/", id);
        gone(self.put(target, Ok(Vec::new())).await)
    }

    /// Deregisters a check; one that does not exist is none any more.
    ///
    /// # Errors
    /// The agent does not answer, or denies the request.
    pub async fn deregister_check(&self, id: &str) -> Result<(), Failure> {
        let target = Target::new("agent/check/deregister/", id);
        gone(self.put(target, Ok(Vec::new())).await)
    }

    /// Sends the result of a TTL check.
    ///
    /// # Errors
    /// The agent does not answer, or has no such check.
    pub async fn update_check(
        &self,
        id: &str,
        status: CheckState,
        output: &str,
    ) -> Result<(), Failure> {
        let target = Target::new("agent/check/update/", id);
        let body = serde_json::to_vec(&CheckUpdate { status, output });
        self.put(target, body).await
    }

    /// Reads a key; `None`: it does not exist.
    ///
    /// # Errors
    /// The agent does not answer, or denies the request.
    pub async fn key(
        &self,
        key: &str,
        scope: &Scope,
        wait: Wait,
    ) -> Result<Found<Option<KvPair>>, Failure> {
        let found = self.query::<Option<Vec<KvPair>>>(Target::new("kv/", key), scope, wait);
        let first = |pairs: Option<Vec<KvPair>>| pairs.unwrap_or_default().into_iter().next();
        Ok(found.await?.map(first))
    }

    /// Lists the keys with a prefix, and their values, sorted.
    ///
    /// # Errors
    /// The agent does not answer, or denies the request.
    pub async fn keys(
        &self,
        prefix: &str,
        scope: &Scope,
        wait: Wait,
    ) -> Result<Found<Vec<KvPair>>, Failure> {
        let target = Target::new("kv/", prefix).map(|target| target.flag("recurse"));
        let found = self.query::<Option<Vec<KvPair>>>(target, scope, wait);
        Ok(found.await?.map(Option::unwrap_or_default))
    }

    /// Lists the instances of a service with their checks. `tag` may be empty.
    ///
    /// # Errors
    /// The agent does not answer, or denies the request.
    pub async fn service(
        &self,
        (name, tag): (&str, &str),
        passing: bool,
        scope: &Scope,
        wait: Wait,
    ) -> Result<Found<Vec<ServiceEntry>>, Failure> {
        let target = Target::new("health/service/", name).map(|target| {
            let target = target.with("tag", tag);
            if passing {
                target.with("passing", "1")
            } else {
                target
            }
        });
        self.query(target, scope, wait).await
    }

    /// Lists the names of all services, each with the tags of its instances.
    ///
    /// # Errors
    /// The agent does not answer, or denies the request.
    pub async fn services(
        &self,
        scope: &Scope,
        wait: Wait,
    ) -> Result<Found<BTreeMap<String, Vec<String>>>, Failure> {
        self.query(Target::new("catalog/services", ""), scope, wait)
            .await
    }

    /// Lists all nodes.
    ///
    /// # Errors
    /// The agent does not answer, or denies the request.
    pub async fn nodes(&self, scope: &Scope, wait: Wait) -> Result<Found<Vec<Node>>, Failure> {
        self.query(Target::new("catalog/nodes", ""), scope, wait)
            .await
    }

    /// Reads a node with its services; `None`: it does not exist.
    ///
    /// # Errors
    /// The agent does not answer, or denies the request.
    pub async fn node(
        &self,
        name: &str,
        scope: &Scope,
        wait: Wait,
    ) -> Result<Found<Option<NodeServices>>, Failure> {
        self.query(Target::new("catalog/node/", name), scope, wait)
            .await
    }

    /// Lists the datacenters, nearest first. This query cannot wait for a change.
    ///
    /// # Errors
    /// The agent does not answer.
    pub async fn datacenters(&self, token: &Token) -> Result<Vec<String>, Failure> {
        self.get(Target::new("catalog/datacenters", ""), Some(token))
            .await
    }

    /// Exchanges a JWT for a token.
    ///
    /// # Errors
    /// Consul does not answer, or refuses the JWT or the method.
    pub async fn log_in(&self, login: &Login) -> Result<AclToken, Failure> {
        let body = json!({
            "AuthMethod": login.auth_method,
            "BearerToken": login.jwt.expose(),
            "Meta": login.meta,
        });
        let target = Target::new("acl/login", "").map(|target| {
            let target = target.with("ns", &login.namespace);
            target.with("partition", &login.partition)
        });
        let sent = self.send(
            Method::POST,
            target,
            None,
            body.to_string().into_bytes(),
            None,
        );
        let answer = sent
            .await
            .map_err(|failure| failure.without(&[login.jwt.expose()]))?;
        let token: AclToken = parse(&answer)?;
        if token.secret.is_empty() {
            let problem = "it has no SecretID".to_owned();
            return Err(Failure::NoConsul { problem });
        }
        Ok(token)
    }

    /// Reads the token itself: tells whether it is valid, and its end.
    ///
    /// # Errors
    /// Consul does not answer, or the token has ended.
    pub async fn token_self(&self, token: &Token) -> Result<AclToken, Failure> {
        self.get(Target::new("acl/token/self", ""), Some(token))
            .await
    }

    /// Ends a token of a login.
    ///
    /// # Errors
    /// Consul does not answer, or the token has ended or comes from no login.
    pub async fn log_out(&self, token: &Token) -> Result<(), Failure> {
        let target = Target::new("acl/logout", "");
        self.send(Method::POST, target, Some(token), Vec::new(), None)
            .await
            .map(drop)
    }

    async fn query<T: DeserializeOwned>(
        &self,
        target: Result<Target, String>,
        scope: &Scope,
        wait: Wait,
    ) -> Result<Found<T>, Failure> {
        let or = |own: &str, default: &str| if own.is_empty() { default } else { own }.to_owned();
        let namespace = or(&scope.namespace, &self.config.namespace);
        let partition = or(&scope.partition, &self.config.partition);
        let target = target.map(|target| {
            let target = target.with("dc", &scope.datacenter);
            let target = target.with("ns", &namespace).with("partition", &partition);
            let target = target.with("near", &scope.near);
            match wait {
                Wait::None => target,
                Wait::Index(index) => target
                    .with("index", &index.to_string())
                    .with("wait", &format!("{}s", WAIT.as_secs())),
            }
        });
        // Consul adds up to a sixteenth.
        let patience = matches!(wait, Wait::Index(_)).then(|| WAIT + WAIT / 16);
        let token = Some(&scope.token);
        let answer = self
            .send(Method::GET, target, token, Vec::new(), patience)
            .await?;
        let data = parse(&answer)?;
        let index = answer.index;
        Ok(Found { data, index })
    }

    async fn get<T: DeserializeOwned>(
        &self,
        target: Result<Target, String>,
        token: Option<&Token>,
    ) -> Result<T, Failure> {
        let answer = self
            .send(Method::GET, target, token, Vec::new(), None)
            .await?;
        parse(&answer)
    }

    async fn put(
        &self,
        target: Result<Target, String>,
        body: serde_json::Result<Vec<u8>>,
    ) -> Result<(), Failure> {
        let body = body.map_err(|error| Failure::Request {
            problem: error.to_string(),
        })?;
        let sent = self.send(Method::PUT, target, None, body, None);
        sent.await.map(drop)
    }

    /// Sends a request with `token`, or with the node's if there is none or it is empty.
    async fn send(
        &self,
        method: Method,
        target: Result<Target, String>,
        token: Option<&Token>,
        body: Vec<u8>,
        wait: Option<std::time::Duration>,
    ) -> Result<Answer, Failure> {
        let target = target.map_err(|problem| Failure::Request { problem })?;
        let own = token.filter(|token| !token.is_empty()).cloned();
        let token = own.unwrap_or_else(|| {
            let known = self.token.read().unwrap_or_else(PoisonError::into_inner);
            known.clone()
        });
        let call = Call {
            method,
            target,
            token: Some(&token),
            body,
            wait,
        };
        let sent = self.transport.send(call).await;
        sent.map_err(|failure| failure.without(&[token.expose()]))
    }
}

fn gone(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(Failure::Absent { .. }) => Ok(()),
        result => result,
    }
}

fn parse<T: DeserializeOwned>(answer: &Answer) -> Result<T, Failure> {
    serde_json::from_slice(&answer.body).map_err(|_| Failure::NoConsul {
        problem: "its JSON has another form".to_owned(),
    })
}

fn connector(config: &ConsulConfig) -> Result<Connector, (&'static str, String)> {
    let expect = match config.tls_server_name.as_str() {
        "" => Expect::Host,
        name => Expect::Name(ServerName::try_from(name.to_owned()).map_err(|error| {
            (
                "tls_server_name",
                format!("{name:?}: {error}; want a DNS name"),
            )
        })?),
    };
    let verify = if config.tls_skip_verify {
        Verify::Nothing
    } else {
        Verify::Servers
    };
    let loaded =
        Credentials::load_with("consul", config.files(), verify, Clients::Certified, |_| {
            Ok(())
        });
    let credentials = loaded.map_err(|error| {
        let field = if config.ca_file.is_some() {
            "ca_file"
        } else {
            "cert_file"
        };
        (field, service_kit::run::chain(&error))
    })?;
    Ok(Connector::new(credentials, expect).for_http1())
}
