//! The memory of the stand-in: services, checks, keys, tokens.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::Instant;

/// A request that changed something, as tests compare it.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub method: String,
    /// With its query.
    pub path: String,
    /// Null: it has none.
    pub body: Value,
}

/// A failure of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 500: the cluster has no leader.
    NoLeader,
    /// 429.
    Throttled,
    /// 403.
    Denied,
    /// The answer comes after this time.
    Slow(Duration),
    /// 200 with a page of HTML, as from a proxy.
    Html,
}

pub(crate) struct State {
    /// Id -> service, as the agent lists it.
    pub(crate) services: BTreeMap<String, Value>,
    /// Id -> check, as the agent lists it.
    pub(crate) checks: BTreeMap<String, Value>,
    /// Instances of other nodes.
    pub(crate) instances: Vec<Value>,
    /// Key -> pair.
    pub(crate) keys: BTreeMap<String, Value>,
    /// Name -> audience and time of tokens.
    pub(crate) auth_methods: BTreeMap<String, (String, Duration)>,
    /// Tokens of logins, with their ends.
    pub(crate) tokens: BTreeMap<String, Option<Instant>>,
    pub(crate) logins: u64,
    pub(crate) management_token: Option<String>,
    pub(crate) fault: Option<Fault>,
    pub(crate) index: u64,
    pub(crate) stops: u64,
    pub(crate) requests: Vec<String>,
    pub(crate) writes: Vec<Write>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            services: BTreeMap::new(),
            checks: BTreeMap::new(),
            instances: Vec::new(),
            keys: BTreeMap::new(),
            auth_methods: BTreeMap::new(),
            tokens: BTreeMap::new(),
            logins: 0,
            management_token: None,
            fault: None,
            index: 1,
            stops: 0,
            requests: Vec::new(),
            writes: Vec::new(),
        }
    }
}

impl State {
    /// Registers a service with its checks; the state of a check that exists stays.
    pub(crate) fn register(&mut self, body: &Value) {
        let id = body["ID"].as_str().unwrap_or_default().to_owned();
        let or = |name: &str, default: Value| match &body[name] {
            Value::Null => default,
            value => value.clone(),
        };
        let service = json!({
            "ID": id,
            "Service": body["Name"],
            "Kind": or("Kind", "".into()),
            "Tags": or("Tags", json!([])),
            "Meta": or("Meta", json!({})),
            "Port": or("Port", 0.into()),
            "Address": or("Address", "".into()),
            "TaggedAddresses": or("TaggedAddresses", json!({})),
            "Weights": or("Weights", json!({"Passing": 1, "Warning": 1})),
            "EnableTagOverride": or("EnableTagOverride", false.into()),
            "Datacenter": "dc1",
        });
        let before = std::mem::take(&mut self.checks);
        let (own, others) = before
            .into_iter()
            .partition(|(_, check)| check["ServiceID"] == *id);
        self.checks = others;
        let own: BTreeMap<String, Value> = own;
        for check in body["Checks"].as_array().into_iter().flatten() {
            let check_id = check["CheckID"].as_str().unwrap_or_default();
            let known = own.get(check_id).map(|check| check["Status"].clone());
            let initial = check["Status"].as_str().unwrap_or("critical").into();
            let stored = json!({
                "Node": "consul-test",
                "CheckID": check_id,
                "Name": check["Name"],
                "Status": known.unwrap_or(initial),
                "Notes": "",
                "Output": "",
                "ServiceID": id,
                "ServiceName": body["Name"],
                "Definition": check,
            });
            self.checks.insert(check_id.to_owned(), stored);
        }
        self.services.insert(id, service);
    }

    pub(crate) fn put_key(&mut self, key: &str, value: &str) {
        let index = self.index + 1;
        let created = self.keys.get(key).map(|pair| pair["CreateIndex"].clone());
        let pair = json!({
            "LockIndex": 0,
            "Key": key,
            "Flags": 0,
            "Value": STANDARD.encode(value),
            "CreateIndex": created.unwrap_or(index.into()),
            "ModifyIndex": index,
        });
        self.keys.insert(key.to_owned(), pair);
    }

    pub(crate) fn put_instance(&mut self, entry: Value) {
        let of = |entry: &Value| {
            (
                entry["Node"]["Node"].clone(),
                entry["Service"]["ID"].clone(),
            )
        };
        self.instances.retain(|known| of(known) != of(&entry));
        self.instances.push(entry);
    }

    /// All instances: the agent's own, and those of other nodes.
    pub(crate) fn entries(&self) -> Vec<Value> {
        let own = self.services.iter().map(|(id, service)| {
            let checks = self.checks.values();
            let checks = checks.filter(|check| check["ServiceID"] == **id);
            json!({
                "Node": {"ID": "00000000-0000-0000-0000-000000000001", "Node": "consul-test",
                    "Address": "127.0.0.1", "Datacenter": "dc1",
                    "TaggedAddresses": {"lan": "127.0.0.1"}, "Meta": {}},
                "Service": service,
                "Checks": checks.cloned().collect::<Vec<_>>(),
            })
        });
        own.chain(self.instances.iter().cloned()).collect()
    }

    pub(crate) fn valid_tokens(&self) -> Vec<String> {
        let now = Instant::now();
        let valid = self
            .tokens
            .iter()
            .filter(|(_, ends)| ends.is_none_or(|ends| now < ends));
        valid.map(|(token, _)| token.clone()).collect()
    }

    pub(crate) fn is_permitted(&self, token: &str) -> bool {
        match &self.management_token {
            None => true,
            Some(management) => {
                management == token || self.valid_tokens().iter().any(|known| known == token)
            }
        }
    }
}
