//! The client: one method per operation of Vault's API.

use std::sync::Arc;

use http_client::{Answer, Header, HttpClient, Method, Request, SettingProblem, Target, Token};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::auth::{self, Auth};
use crate::config::VaultConfig;
use crate::failure::{self, Failure};
use crate::kv::Mount;
use crate::secret::Secret;

/// Statuses with which `sys/health` reports a server that is up, whatever its state.
const HEALTH: [(&str, &str); 5] = [
    ("standbyok", "true"),
    ("perfstandbyok", "true"),
    ("drsecondarycode", "299"),
    ("sealedcode", "299"),
    ("uninitcode", "299"),
];

/// A client of one Vault, in one namespace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    http: Arc<HttpClient>,
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
    pub fn open(config: &VaultConfig) -> Result<Self, SettingProblem> {
        Ok(Self {
            http: Arc::new(HttpClient::open(&config.http())?),
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
        let call = Call {
            query: &HEALTH,
            namespace: "",
            ..Call::new(Method::GET, "sys/health")
        };
        let answer = self.send(call).await?;
        let health: Health = parse(&answer)?;
        if health.version.is_empty() {
            return Err(Failure::foreign("it has no version".to_owned()));
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
        let call = Call {
            namespace: &self.namespace,
            body: Some(&body),
            hidden: vec![login.jwt.expose()],
            ..Call::new(Method::POST, &path)
        };
        let answer = self.send(call).await?;
        auth::read(&answer.body).map_err(Failure::foreign)
    }

    /// Extends the life of a token.
    ///
    /// # Errors
    /// Vault does not answer, or the token has ended or cannot be renewed.
    pub async fn renew_self(&self, token: &Token) -> Result<Auth, Failure> {
        let answer = self
            .post("auth/token/renew-self", token, &json!({}))
            .await?;
        auth::read(&answer.body).map_err(Failure::foreign)
    }

    /// Ends a token, with all leases that it has.
    ///
    /// # Errors
    /// Vault does not answer, or the token has ended.
    pub async fn revoke_self(&self, token: &Token) -> Result<(), Failure> {
        self.post("auth/token/revoke-self", token, &json!({}))
            .await
            .map(drop)
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
        let version = version.map(|version| version.to_string());
        let query = version.as_deref().map(|version| ("version", version));
        self.get(path, query.as_slice(), token).await
    }

    /// Lists the names below `path`.
    ///
    /// # Errors
    /// As those of [`Self::read`].
    pub async fn list(&self, path: &str, token: &Token) -> Result<Secret, Failure> {
        self.get(path, &[("list", "true")], token).await
    }

    /// Writes `data`, an object, and returns the answer; that of an engine without one is empty.
    ///
    /// # Errors
    /// Vault does not answer or refuses. Errors have none of the data's texts.
    pub async fn write(&self, path: &str, data: &Value, token: &Token) -> Result<Secret, Failure> {
        let answer = self.post(path, token, data).await?;
        Secret::read(&answer.body).map_err(Failure::foreign)
    }

    /// Extends a lease; the answer has its new length and no data.
    ///
    /// # Errors
    /// Vault does not answer, or the lease has ended or cannot be renewed.
    pub async fn renew_lease(&self, lease_id: &str, token: &Token) -> Result<Secret, Failure> {
        let body = json!({ "lease_id": lease_id });
        let answer = self.post("sys/leases/renew", token, &body).await?;
        Secret::read(&answer.body).map_err(Failure::foreign)
    }

    /// Looks the mount of a path up, as far as the token may see it.
    ///
    /// # Errors
    /// Vault does not answer, or the token has no right below the mount.
    pub async fn mount(&self, path: &str, token: &Token) -> Result<Mount, Failure> {
        let path = format!("sys/internal/ui/mounts/{}", path.trim_matches('/'));
        let secret = self.get(&path, &[], token).await?;
        Mount::read(&secret.data)
            .ok_or_else(|| Failure::foreign("its mount has no path".to_owned()))
    }

    async fn get(
        &self,
        path: &str,
        query: &[(&str, &str)],
        token: &Token,
    ) -> Result<Secret, Failure> {
        let call = Call {
            query,
            token: Some(token),
            namespace: &self.namespace,
            ..Call::new(Method::GET, path)
        };
        let answer = self.send(call).await?;
        Secret::read(&answer.body).map_err(Failure::foreign)
    }

    async fn post(&self, path: &str, token: &Token, body: &Value) -> Result<Answer, Failure> {
        let mut hidden = Vec::new();
        texts(body, &mut hidden);
        let call = Call {
            token: Some(token),
            namespace: &self.namespace,
            body: Some(body),
            hidden,
            ..Call::new(Method::POST, path)
        };
        self.send(call).await
    }

    /// Sends a request.
    async fn send(&self, call: Call<'_>) -> Result<Answer, Failure> {
        let body = call.body.map(Value::to_string).unwrap_or_default();
        let request = Request {
            target: target(call.path, call.query).map_err(Failure::request)?,
            headers: call.headers(),
            method: call.method,
            body: body.into_bytes(),
            wait: None,
        };
        let answer = self.http.send(request).await?;
        if answer.is_success() {
            return Ok(answer);
        }
        let mut hidden = call.hidden;
        hidden.extend(call.token.map(Token::expose));
        let retry_after = answer.header("Retry-After");
        Err(failure::of_answer(answer.status, &answer.body, retry_after).without(&hidden))
    }
}

/// A request.
struct Call<'a> {
    method: Method,
    path: &'a str,
    query: &'a [(&'a str, &'a str)],
    token: Option<&'a Token>,
    namespace: &'a str,
    body: Option<&'a Value>,
    /// Texts of the request, besides its token, that no failure shows.
    hidden: Vec<&'a str>,
}

impl<'a> Call<'a> {
    fn new(method: Method, path: &'a str) -> Self {
        Self {
            method,
            path,
            query: &[],
            token: None,
            namespace: "",
            body: None,
            hidden: Vec::new(),
        }
    }

    fn headers(&self) -> Vec<Header<'a>> {
        // Servers refuse requests without the first if they are told so, against forged requests.
        let mut headers = vec![Header {
            name: "X-Vault-Request",
            value: "true",
            content: "request",
        }];
        if !self.namespace.is_empty() {
            headers.push(Header {
                name: "X-Vault-Namespace",
                value: self.namespace,
                content: "namespace",
            });
        }
        if let Some(token) = self.token {
            headers.push(Header {
                name: "X-Vault-Token",
                value: token.expose(),
                content: "token",
            });
        }
        headers
    }
}

/// Returns the path below `/v1/` and the query of a request.
///
/// # Errors
/// The path is empty, or leaves the API.
fn target(path: &str, query: &[(&str, &str)]) -> Result<Target, String> {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return Err("the path is empty: want one as in secret/data/app".to_owned());
    }
    let target = Target::new("", path)?;
    let with = |target: Target, (name, value): &(&str, &str)| target.with(name, value);
    Ok(query.iter().fold(target, with))
}

fn parse<'a, T: Deserialize<'a>>(answer: &'a Answer) -> Result<T, Failure> {
    serde_json::from_slice(&answer.body).map_err(|_| {
        let status = answer.status;
        Failure::foreign(format!("status {status}, and its JSON has another form"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_not_empty_and_stays_below_the_api() {
        assert!(target("/kv/a b/", &[("list", "true")]).is_ok());
        assert!(target("kv/../sys", &[]).unwrap_err().contains(".."));
        assert!(target("/", &[]).unwrap_err().contains("empty"));
    }
}
