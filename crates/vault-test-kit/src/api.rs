//! The answers of the API.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::state::{Fault, State};

/// A request.
pub(crate) struct Call {
    pub(crate) method: String,
    /// Without `/v1/`.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) token: String,
    pub(crate) namespace: String,
    pub(crate) body: Value,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.namespace.is_empty() {
            write!(f, " @{}", self.namespace)?;
        }
        Ok(())
    }
}

/// A text as body stands for itself, null for an empty body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) retry_after: Option<u64>,
}

fn reply(status: u16, body: Value) -> Answer {
    Answer { status, body, retry_after: None }
}

fn refuse(status: u16, error: &str) -> Answer {
    reply(status, json!({ "errors": [error] }))
}

fn absent() -> Answer {
    reply(404, json!({ "errors": [] }))
}

pub(crate) fn faulty(fault: Fault, call: &Call) -> Answer {
    if call.path == "sys/health" && !matches!(fault, Fault::Error | Fault::Html) {
        return health(fault == Fault::Sealed, fault == Fault::Standby);
    }
    match fault {
        Fault::Sealed => refuse(503, "Vault is sealed"),
        Fault::Standby => reply(307, Value::Null),
        Fault::Throttled(seconds) => Answer {
            retry_after: Some(seconds),
            ..refuse(429, "request path \"x\": rate limit quota exceeded")
        },
        Fault::Error => refuse(500, "internal error"),
        Fault::Denied => refuse(403, "permission denied"),
        Fault::Slow(_) => reply(200, json!({})),
        Fault::Html => reply(200, json!("<html>hello</html>")),
        Fault::Quoting => refuse(500, &format!("cannot serve {} with {}", call.token, call.body)),
    }
}

fn health(sealed: bool, standby: bool) -> Answer {
    let body = json!({
        "initialized": true,
        "sealed": sealed,
        "standby": standby,
        "performance_standby": false,
        "replication_performance_mode": "disabled",
        "replication_dr_mode": "disabled",
        "server_time_utc": 1_700_000_000,
        "version": "1.15.2",
        "cluster_name": "vault-cluster-test",
        "cluster_id": "00000000-0000-0000-0000-000000000001",
    });
    reply(if sealed { 299 } else { 200 }, body)
}

pub(crate) fn answer(state: &mut State, call: &Call) -> Answer {
    let is_write = call.method == "POST" || call.method == "PUT";
    match call.path.as_str() {
        "sys/health" => return health(false, false),
        "auth/jwt-nomad/login" if is_write => return log_in(state, &call.body),
        _ => {}
    }
    if !state.is_valid(&call.token) {
        return refuse(403, "permission denied");
    }
    let path = call.path.as_str();
    if let Some(path) = path.strip_prefix("sys/internal/ui/mounts/") {
        return mount(path);
    }
    match path {
        "auth/token/renew-self" if is_write => match state.renew(&call.token) {
            Ok(auth) => reply(200, json!({ "auth": auth })),
            Err(error) => refuse(400, error),
        },
        "auth/token/revoke-self" if is_write => {
            state.revoke(&call.token);
            reply(204, Value::Null)
        }
        "sys/leases/renew" if is_write => renew_lease(state, &call.body),
        _ => secrets(state, call, is_write),
    }
}

fn log_in(state: &mut State, body: &Value) -> Answer {
    let name = body["role"].as_str().unwrap_or("web");
    let Some(role) = state.roles.get(name).cloned() else {
        return refuse(400, &format!("role {name:?} could not be found"));
    };
    let Some(claims) = body["jwt"].as_str().and_then(claims) else {
        return refuse(400, "error validating token: invalid JWT");
    };
    let given: Vec<&str> = match &claims["aud"] {
        Value::String(one) => vec![one],
        Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is_bound = role.audiences.is_empty()
        || role.audiences.iter().any(|audience| given.contains(&audience.as_str()));
    if !is_bound {
        return refuse(400, "error validating token: invalid audience (aud) claim");
    }
    let auth = state.log_in(role);
    reply(200, json!({ "request_id": "r", "lease_id": "", "data": null, "auth": auth }))
}

fn claims(jwt: &str) -> Option<Value> {
    let mut parts = jwt.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes = URL_SAFE_NO_PAD.decode(payload).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn mount(path: &str) -> Answer {
    let (name, options) = match path.split('/').next().unwrap_or_default() {
        "secret" => ("secret/", json!({ "version": "2" })),
        "kv" => ("kv/", json!({ "version": "1" })),
        name @ ("database" | "pki") => (if name == "pki" { "pki/" } else { "database/" }, Value::Null),
        _ => {
            let error = "preflight capability check returned 403, please ensure client's policies grant \
                         access to path";
            return refuse(403, error);
        }
    };
    let data = json!({ "path": name, "type": "kv", "options": options });
    reply(200, json!({ "request_id": "r", "data": data }))
}

fn renew_lease(state: &mut State, body: &Value) -> Answer {
    let id = body["lease_id"].as_str().unwrap_or_default();
    let Some(lease) = state.leases.get_mut(id) else {
        return refuse(400, "lease not found");
    };
    if !lease.renewable {
        return refuse(400, "lease is not renewable");
    }
    lease.ends = Instant::now() + lease.length;
    let seconds = seconds(lease.length);
    reply(200, json!({ "lease_id": id, "renewable": true, "lease_duration": seconds }))
}

fn seconds(length: Duration) -> u64 {
    length.as_secs().max(1)
}

fn secrets(state: &mut State, call: &Call, is_write: bool) -> Answer {
    let path = call.path.as_str();
    if let Some(role) = path.strip_prefix("database/creds/") {
        let Some((length, renewable)) = state.credentials.get(role).copied() else {
            return refuse(400, &format!("unknown role: {role}"));
        };
        let id = state.lease(path, &call.token, length, renewable);
        let number = state.next();
        let data = json!({ "username": format!("u{number}"), "password": format!("p{number}-PLANTED") });
        return reply(200, json!({
            "request_id": "r", "lease_id": id, "renewable": renewable,
            "lease_duration": seconds(length), "data": data,
        }));
    }
    if path.strip_prefix("pki/issue/").is_some() && is_write {
        let name = call.body["common_name"].as_str().unwrap_or_default();
        if name.is_empty() {
            return refuse(400, "the common_name field is required");
        }
        let number = state.next();
        let data = json!({
            "certificate": format!("CERT {number} of {name}"), "issuing_ca": "CA", "ca_chain": ["CA"],
            "private_key": "KEY-PLANTED", "private_key_type": "rsa", "serial_number": number.to_string(),
            "expiration": 4_000_000_000_u64,
        });
        return reply(200, json!({ "request_id": "r", "lease_id": "", "data": data }));
    }
    match path.split_once('/') {
        Some(("kv", _)) if is_write => {
            state.put(path, call.body.clone());
            reply(204, Value::Null)
        }
        Some(("kv", _)) if call.query == "list=true" => list(state, path),
        Some(("kv", _)) => match state.secrets.get(path).and_then(|versions| versions.last()) {
            Some(Some(data)) => reply(200, json!({
                "request_id": "r", "lease_id": "", "renewable": false,
                // The default of KV version 1: a month, without a lease.
                "lease_duration": 2_764_800, "data": data,
            })),
            _ => absent(),
        },
        Some(("secret", rest)) => kv2(state, rest, call, is_write),
        _ => refuse(404, &format!("no handler for route {path:?}")),
    }
}

fn kv2(state: &mut State, rest: &str, call: &Call, is_write: bool) -> Answer {
    if let Some(rest) = rest.strip_prefix("metadata/").or((rest == "metadata").then_some("")) {
        return list(state, format!("secret/{rest}").trim_end_matches('/'));
    }
    let Some(rest) = rest.strip_prefix("data/") else {
        return absent();
    };
    let path = format!("secret/{rest}");
    if is_write {
        state.put(&path, call.body["data"].clone());
        return reply(200, json!({ "data": { "version": state.secrets[&path].len() } }));
    }
    let Some(versions) = state.secrets.get(&path) else {
        return absent();
    };
    let asked = call.query.strip_prefix("version=").and_then(|text| text.parse().ok());
    let version = asked.unwrap_or(versions.len());
    let metadata = |deleted: &str| {
        json!({ "version": version, "created_time": "2026-01-01T00:00:00Z", "deletion_time": deleted,
                "destroyed": false, "custom_metadata": null })
    };
    match version.checked_sub(1).and_then(|position| versions.get(position)) {
        None => absent(),
        Some(None) => reply(404, json!({ "data": { "data": null, "metadata": metadata("2026-01-02T00:00:00Z") } })),
        Some(Some(data)) => reply(200, json!({
            "request_id": "r", "lease_id": "", "lease_duration": 0, "renewable": false,
            "data": { "data": data, "metadata": metadata("") },
        })),
    }
}

fn list(state: &State, path: &str) -> Answer {
    let prefix = format!("{path}/");
    let mut keys: Vec<String> = state
        .secrets
        .keys()
        .filter_map(|path| path.strip_prefix(&prefix))
        .map(|rest| match rest.split_once('/') {
            Some((folder, _)) => format!("{folder}/"),
            None => rest.to_owned(),
        })
        .collect();
    keys.dedup();
    if keys.is_empty() {
        return absent();
    }
    reply(200, json!({ "request_id": "r", "data": { "keys": keys } }))
}
