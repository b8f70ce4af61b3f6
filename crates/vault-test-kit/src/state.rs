//! The memory of the stand-in: roles, tokens, leases, secrets.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

/// A failure of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 503.
    Sealed,
    /// 307 to another server, which is the answer of a standby that does not forward requests.
    Standby,
    /// 429 with a header `Retry-After`, in seconds.
    Throttled(u64),
    /// 500.
    Error,
    /// 403 for all requests with a token.
    Denied,
    /// The answer comes after this time.
    Slow(Duration),
    /// 200 with a page of HTML, as from a proxy.
    Html,
    /// 500 that quotes the request's token and body.
    Quoting,
}

/// A role of the JWT auth method.
#[derive(Clone, Debug)]
pub struct Role {
    /// `bound_audiences`; empty: any.
    pub audiences: Vec<String>,
    pub policies: Vec<String>,
    /// Zero: tokens do not end.
    pub ttl: Duration,
    /// Zero: renewals have no end.
    pub max_ttl: Duration,
    pub renewable: bool,
}

impl Default for Role {
    fn default() -> Self {
        Self {
            audiences: vec!["vault.io".to_owned()],
            policies: vec!["default".to_owned()],
            ttl: Duration::from_secs(3600),
            max_ttl: Duration::ZERO,
            renewable: true,
        }
    }
}

pub(crate) struct TokenRecord {
    pub(crate) role: Role,
    pub(crate) created: Instant,
    pub(crate) ends: Option<Instant>,
}

pub(crate) struct Lease {
    pub(crate) token: String,
    pub(crate) ends: Instant,
    pub(crate) length: Duration,
    pub(crate) renewable: bool,
}

pub(crate) struct State {
    pub(crate) fault: Option<Fault>,
    pub(crate) roles: BTreeMap<String, Role>,
    pub(crate) tokens: BTreeMap<String, TokenRecord>,
    pub(crate) leases: BTreeMap<String, Lease>,
    /// By path below `kv/` or `secret/`: the versions, of which KV version 1 has one.
    pub(crate) secrets: BTreeMap<String, Vec<Option<Value>>>,
    pub(crate) credentials: BTreeMap<String, (Duration, bool)>,
    pub(crate) requests: Vec<String>,
    /// Number of objects that have been created: part of their names.
    pub(crate) created: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            fault: None,
            roles: BTreeMap::from([("web".to_owned(), Role::default())]),
            tokens: BTreeMap::new(),
            leases: BTreeMap::new(),
            secrets: BTreeMap::new(),
            credentials: BTreeMap::new(),
            requests: Vec::new(),
            created: 0,
        }
    }
}

impl State {
    /// The fault of a request to `path`.
    pub(crate) fn fault_of(&self, path: &str) -> Option<Fault> {
        self.fault
            .filter(|fault| *fault != Fault::Denied || !path.starts_with("auth/jwt"))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.created += 1;
        self.created
    }

    pub(crate) fn put(&mut self, path: &str, data: Value) {
        let versions = self.secrets.entry(path.to_owned()).or_default();
        if path.starts_with("kv/") {
            versions.clear();
        }
        versions.push(Some(data));
    }

    pub(crate) fn delete(&mut self, path: &str) {
        if path.starts_with("kv/") {
            self.secrets.remove(path);
        } else if let Some(newest) = self.secrets.get_mut(path).and_then(|versions| versions.last_mut()) {
            *newest = None;
        }
    }

    pub(crate) fn log_in(&mut self, role: Role) -> Value {
        let token = format!("hvs.token-{}-PLANTED", self.next());
        let now = Instant::now();
        let ends = (!role.ttl.is_zero()).then(|| now + role.ttl);
        let auth = auth(&token, &role, role.ttl);
        self.tokens.insert(token, TokenRecord { role, created: now, ends });
        auth
    }

    /// Renews a valid token.
    pub(crate) fn renew(&mut self, token: &str) -> Result<Value, &'static str> {
        let now = Instant::now();
        let Some(record) = self.tokens.get_mut(token) else {
            return Err("token not found");
        };
        let role = record.role.clone();
        if !role.renewable {
            return Err("lease is not renewable");
        }
        let age = now - record.created;
        let granted = if role.max_ttl.is_zero() {
            role.ttl
        } else {
            role.ttl.min(role.max_ttl.saturating_sub(age))
        };
        record.ends = (!role.ttl.is_zero()).then(|| now + granted);
        Ok(auth(token, &role, granted))
    }

    pub(crate) fn is_valid(&mut self, token: &str) -> bool {
        self.expire();
        self.tokens.contains_key(token)
    }

    pub(crate) fn revoke(&mut self, token: &str) {
        self.tokens.remove(token);
        self.leases.retain(|_, lease| lease.token != token);
    }

    pub(crate) fn revoke_all(&mut self) {
        self.tokens.clear();
        self.leases.clear();
    }

    pub(crate) fn valid_tokens(&mut self) -> Vec<String> {
        self.expire();
        self.tokens.keys().cloned().collect()
    }

    pub(crate) fn valid_leases(&mut self) -> Vec<String> {
        self.expire();
        self.leases.keys().cloned().collect()
    }

    pub(crate) fn lease(&mut self, path: &str, token: &str, length: Duration, renewable: bool) -> String {
        let id = format!("{path}/{}", self.next());
        let lease = Lease {
            token: token.to_owned(),
            ends: Instant::now() + length,
            length,
            renewable,
        };
        self.leases.insert(id.clone(), lease);
        id
    }

    fn expire(&mut self) {
        let now = Instant::now();
        self.tokens.retain(|_, token| token.ends.is_none_or(|ends| ends > now));
        let tokens = &self.tokens;
        self.leases.retain(|_, lease| lease.ends > now && tokens.contains_key(&lease.token));
    }
}

fn auth(token: &str, role: &Role, granted: Duration) -> Value {
    json!({
        "client_token": token,
        "accessor": format!("accessor-of-{}", token.len()),
        "policies": role.policies,
        "token_policies": role.policies,
        "metadata": {},
        // As Vault, which rounds to seconds; a shorter life counts as one second.
        "lease_duration": granted.as_secs().max(u64::from(!granted.is_zero())),
        "renewable": role.renewable,
        "entity_id": "",
        "token_type": "service",
        "orphan": true,
    })
}
