//! The client: one method per operation of Consul's API.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http_client::{Answer, Header, HttpClient, Method, Request, SettingProblem, Target, Token};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::acl::AclToken;
use crate::agent::{AgentCheck, AgentSelf, AgentService, CheckState, CheckUpdate, Registration};
use crate::blocking::{Found, WAIT, Wait};
use crate::catalog::{Node, NodeServices, ServiceEntry};
use crate::config::ConsulConfig;
use crate::failure::{self, Failure};
use crate::kv::KvPair;

/// A client of one agent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    http: Arc<HttpClient>,
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
    pub fn open(config: &ConsulConfig) -> Result<Self, SettingProblem> {
        let http = HttpClient::open(&config.http())?;
        let token = config.read_token()?;
        Ok(Self {
            http: Arc::new(http),
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
            return Err(Failure::foreign("it has no version"));
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
        let call = Call {
            body: body.to_string().into_bytes(),
            hidden: &[login.jwt.expose()],
            ..Call::new(Method::POST)
        };
        let (answer, _) = self.send(target, call).await?;
        let token: AclToken = parse(&answer)?;
        if token.secret.is_empty() {
            return Err(Failure::foreign("it has no SecretID"));
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
        let call = Call {
            token: Some(token),
            ..Call::new(Method::POST)
        };
        self.send(target, call).await.map(drop)
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
        let call = Call {
            token: Some(&scope.token),
            // Consul adds up to a sixteenth.
            wait: matches!(wait, Wait::Index(_)).then(|| WAIT + WAIT / 16),
            ..Call::new(Method::GET)
        };
        let (answer, index) = self.send(target, call).await?;
        let data = parse(&answer)?;
        Ok(Found { data, index })
    }

    async fn get<T: DeserializeOwned>(
        &self,
        target: Result<Target, String>,
        token: Option<&Token>,
    ) -> Result<T, Failure> {
        let call = Call {
            token,
            ..Call::new(Method::GET)
        };
        let (answer, _) = self.send(target, call).await?;
        parse(&answer)
    }

    async fn put(
        &self,
        target: Result<Target, String>,
        body: serde_json::Result<Vec<u8>>,
    ) -> Result<(), Failure> {
        let call = Call {
            body: body.map_err(|error| Failure::request(error.to_string()))?,
            ..Call::new(Method::PUT)
        };
        self.send(target, call).await.map(drop)
    }

    /// Sends a request with its token, or with the node's if there is none or it is empty. Returns the answer
    /// and its index; 0: it has none.
    async fn send(
        &self,
        target: Result<Target, String>,
        call: Call<'_>,
    ) -> Result<(Vec<u8>, u64), Failure> {
        let own = call.token.filter(|token| !token.is_empty()).cloned();
        let token = own.unwrap_or_else(|| {
            let known = self.token.read().unwrap_or_else(PoisonError::into_inner);
            known.clone()
        });
        let header = Header {
            name: "X-Consul-Token",
            value: token.expose(),
            content: "token",
        };
        let request = Request {
            method: call.method,
            target: target.map_err(Failure::request)?,
            headers: Vec::from_iter((!token.is_empty()).then_some(header)),
            body: call.body,
            wait: call.wait,
        };
        let answer = self.http.send(request).await?;
        let mut hidden = vec![token.expose()];
        hidden.extend(call.hidden);
        read(answer).map_err(|failure| failure.without(&hidden))
    }
}

/// A request apart from its target.
struct Call<'a> {
    method: Method,
    token: Option<&'a Token>,
    body: Vec<u8>,
    wait: Option<Duration>,
    /// Texts of the request, besides its token, that no failure shows.
    hidden: &'a [&'a str],
}

impl Call<'_> {
    fn new(method: Method) -> Self {
        Self {
            method,
            token: None,
            body: Vec::new(),
            wait: None,
            hidden: &[],
        }
    }
}

/// Returns the body of an answer and its index.
fn read(answer: Answer) -> Result<(Vec<u8>, u64), Failure> {
    let index = answer.header("X-Consul-Index");
    let index = index.and_then(|text| text.parse().ok());
    if answer.is_success() {
        return Ok((answer.body, index.unwrap_or_default()));
    }
    match (failure::of_answer(answer.status, &answer.body), index) {
        // An absent key has an index to wait from.
        (Failure::Absent { .. }, Some(index)) => Ok((b"null".to_vec(), index)),
        (failure, _) => Err(failure),
    }
}

fn gone(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(Failure::Absent { .. }) => Ok(()),
        result => result,
    }
}

fn parse<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer).map_err(|_| Failure::foreign("its JSON has another form"))
}
