//! The answers of the API.

use std::collections::{BTreeMap, BTreeSet};

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
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) token: String,
    pub(crate) body: Value,
}

/// A text as body stands for itself, null for an empty body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) has_index: bool,
}

fn reply(body: Value) -> Answer {
    Answer {
        status: 200,
        body,
        has_index: false,
    }
}

fn indexed(body: Value) -> Answer {
    Answer {
        has_index: true,
        ..reply(body)
    }
}

fn refuse(status: u16, text: &str) -> Answer {
    Answer {
        status,
        ..reply(text.into())
    }
}

pub(crate) fn faulty(fault: Fault) -> Answer {
    match fault {
        Fault::NoLeader | Fault::Slow(_) => refuse(500, "No cluster leader"),
        Fault::Throttled => refuse(429, ""),
        Fault::Denied => refuse(403, "Permission denied"),
        Fault::Html => reply("<html>hello</html>".into()),
    }
}

/// The end of a query whose server has stopped.
pub(crate) fn broken() -> Answer {
    refuse(500, "the server has stopped")
}

pub(crate) fn answer(state: &mut State, call: &Call) -> Answer {
    let path = call.path.as_str();
    if path == "acl/login" {
        return log_in(state, &call.body);
    }
    if !state.is_permitted(&call.token) {
        return refuse(403, "Permission denied: token lacks permission");
    }
    if call.method != "GET" {
        return write(state, call);
    }
    if let Some(key) = path.strip_prefix("kv/") {
        return key_values(state, call, key);
    }
    if let Some(name) = path.strip_prefix("health/service/") {
        return health(state, call, name);
    }
    if let Some(name) = path.strip_prefix("catalog/node/") {
        return node(state, name);
    }
    match path {
        "agent/self" => reply(json!({
            "Config": {"Datacenter": "dc1", "PrimaryDatacenter": "dc1", "NodeName": "consul-test",
                "NodeID": "00000000-0000-0000-0000-000000000001", "Revision": "abc", "Server": true,
                "Version": "1.17.1", "BuildDate": "2023-12-12T00:00:00Z"},
            "DebugConfig": {"ConnectEnabled": true, "GRPCPort": 8502, "DNSPort": 8600, "SegmentName": ""},
            "Stats": {"license": null},
            "Member": {"Name": "consul-test"},
        })),
        "agent/services" => reply(json!(state.services)),
        "agent/checks" => reply(json!(state.checks)),
        "catalog/services" => indexed(services(state)),
        "catalog/nodes" => indexed(nodes(state)),
        "catalog/datacenters" => reply(json!(["dc1", "dc2"])),
        "acl/token/self" => match state.tokens.get(&call.token) {
            Some(ends) => reply(token(&call.token, *ends)),
            None => refuse(403, "ACL not found"),
        },
        _ => refuse(404, "no such path"),
    }
}

fn write(state: &mut State, call: &Call) -> Answer {
    let path = call.path.as_str();
    if let Some(id) = path.strip_prefix("agent/service/deregister/") {
        if state.services.remove(id).is_none() {
            return refuse(404, &format!("Unknown service ID {id:?}"));
        }
        state.checks.retain(|_, check| check["ServiceID"] != id);
        return reply(Value::Null);
    }
    if let Some(id) = path.strip_prefix("agent/check/deregister/") {
        return match state.checks.remove(id) {
            Some(_) => reply(Value::Null),
            None => refuse(404, &format!("Unknown check ID {id:?}")),
        };
    }
    if let Some(id) = path.strip_prefix("agent/check/update/") {
        let Some(check) = state.checks.get_mut(id) else {
            return refuse(404, &format!("Unknown check ID {id:?}"));
        };
        if check["Definition"]["TTL"].is_null() {
            return refuse(500, &format!("CheckID {id:?} does not have associated TTL"));
        }
        check["Status"] = call.body["Status"].clone();
        check["Output"] = call.body["Output"].clone();
        return reply(Value::Null);
    }
    match path {
        "agent/service/register" if call.body["Name"].is_string() => {
            state.register(&call.body);
            reply(Value::Null)
        }
        "acl/logout" => match state.tokens.remove(&call.token) {
            Some(_) => reply(Value::Null),
            None => refuse(403, "ACL not found"),
        },
        _ => refuse(400, "bad request"),
    }
}

fn log_in(state: &mut State, body: &Value) -> Answer {
    let name = body["AuthMethod"].as_str().unwrap_or_default();
    let Some((audience, ttl)) = state.auth_methods.get(name).cloned() else {
        return refuse(403, "ACL not found: auth method not found");
    };
    let Some(claims) = body["BearerToken"].as_str().and_then(claims) else {
        return refuse(403, "Permission denied: invalid JWT");
    };
    let is_bound = match &claims["aud"] {
        Value::String(one) => *one == audience,
        Value::Array(some) => some.iter().any(|one| *one == *audience),
        _ => false,
    };
    if !is_bound {
        return refuse(403, "Permission denied: audience claim does not match");
    }
    state.logins += 1;
    let secret = format!("00000000-0000-0000-0000-{:012}", state.logins);
    let ends = (!ttl.is_zero()).then(|| Instant::now() + ttl);
    state.tokens.insert(secret.clone(), ends);
    reply(token(&secret, ends))
}

fn token(secret: &str, ends: Option<Instant>) -> Value {
    let mut token = json!({
        "AccessorID": format!("accessor-of-{}", &secret[secret.len() - 4..]),
        "SecretID": secret,
        "AuthMethod": "nomad-workloads",
        "Local": true,
    });
    if let Some(ends) = ends {
        let left = ends.saturating_duration_since(Instant::now());
        let end = jiff::Timestamp::now() + left;
        token["ExpirationTime"] = end.to_string().into();
    }
    token
}

fn claims(jwt: &str) -> Option<Value> {
    let mut parts = jwt.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes = URL_SAFE_NO_PAD.decode(payload).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn key_values(state: &State, call: &Call, key: &str) -> Answer {
    let found: Vec<&Value> = if call.query.contains_key("recurse") {
        let below = state
            .keys
            .iter()
            .filter(|(known, _)| known.starts_with(key));
        below.map(|(_, pair)| pair).collect()
    } else {
        state.keys.get(key).into_iter().collect()
    };
    if found.is_empty() {
        return Answer {
            status: 404,
            ..indexed(Value::Null)
        };
    }
    indexed(json!(found))
}

fn health(state: &State, call: &Call, name: &str) -> Answer {
    let tag = call.query.get("tag");
    let is_passing = |entry: &Value| {
        let mut checks = entry["Checks"].as_array().into_iter().flatten();
        checks.all(|check| check["Status"] == "passing")
    };
    let has_tag = |entry: &Value, tag: &str| {
        let mut tags = entry["Service"]["Tags"].as_array().into_iter().flatten();
        tags.any(|known| known == tag)
    };
    let found = state.entries().into_iter().filter(|entry| {
        entry["Service"]["Service"] == name
            && tag.is_none_or(|tag| has_tag(entry, tag))
            && (!call.query.contains_key("passing") || is_passing(entry))
    });
    indexed(found.collect())
}

fn services(state: &State) -> Value {
    let mut found = BTreeMap::from([("consul".to_owned(), BTreeSet::new())]);
    for entry in state.entries() {
        let name = entry["Service"]["Service"].as_str().unwrap_or_default();
        let tags = entry["Service"]["Tags"].as_array().into_iter().flatten();
        let tags = tags.filter_map(Value::as_str).map(str::to_owned);
        found.entry(name.to_owned()).or_default().extend(tags);
    }
    json!(found)
}

fn nodes(state: &State) -> Value {
    let mut found = BTreeMap::new();
    for entry in state.entries() {
        let name = entry["Node"]["Node"].as_str().unwrap_or_default();
        found.insert(name.to_owned(), entry["Node"].clone());
    }
    found.into_values().collect()
}

fn node(state: &State, name: &str) -> Answer {
    let entries = state.entries();
    let own: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["Node"]["Node"] == name)
        .collect();
    let Some(first) = own.first() else {
        return indexed("null".into());
    };
    let services: BTreeMap<&str, &Value> = own
        .iter()
        .filter_map(|entry| Some((entry["Service"]["ID"].as_str()?, &entry["Service"])))
        .collect();
    indexed(json!({ "Node": first["Node"], "Services": services }))
}
