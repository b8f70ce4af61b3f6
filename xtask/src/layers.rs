//! Asserts that dependencies point one way: cli → services → libraries → deciders → state → model.
//!
//! The table below is the whole rule; a crate that is not in it fails the check, so that a new one
//! has to say where it belongs.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::metadata::array;

/// Crates of ours that a crate may depend on, without its tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("fnv1a", &[]),
    ("model", &["fnv1a"]),
    ("state", &["model"]),
    ("job-fields", &["model"]),
    ("cron", &[]),
    ("workload-identity", &["model"]),
    ("etcd-snapshot", &["fnv1a"]),
    ("s3", &[]),
    ("artifact", &[]),
    (
        "artifact-fetch",
        &["artifact", "backoff", "blocking", "s3", "service-kit"],
    ),
    ("jobdiff", &["model", "job-fields"]),
    ("backoff", &[]),
    ("duration", &[]),
    ("suggest", &[]),
    ("hcl", &["duration", "suggest"]),
    ("template", &["suggest"]),
    ("template-watch", &["backoff", "service-kit", "template"]),
    ("http-client", &["connections", "service-kit", "tls"]),
    ("vault", &["http-client", "service-kit"]),
    ("login-provider", &["backoff", "http-client", "service-kit"]),
    (
        "task-vault",
        &[
            "login-provider",
            "service-kit",
            "template",
            "template-watch",
            "vault",
        ],
    ),
    ("consul", &["duration", "http-client", "service-kit"]),
    ("consul-sync", &["backoff", "consul"]),
    (
        "task-consul",
        &[
            "backoff",
            "consul",
            "login-provider",
            "service-kit",
            "template",
            "template-watch",
        ],
    ),
    (
        "jobspec",
        &[
            "artifact",
            "model",
            "cron",
            "duration",
            "hcl",
            "job-fields",
            "suggest",
            "template",
        ],
    ),
    ("placement", &["fnv1a", "model", "state"]),
    ("scheduler", &["model", "state", "placement"]),
    ("applier", &["model", "state", "placement"]),
    ("broker", &["model", "state", "placement"]),
    ("rollout", &["model", "state", "placement"]),
    ("periodic-launch", &["model", "state", "cron"]),
    (
        "controller",
        &["model", "state", "placement", "periodic-launch"],
    ),
    (
        "admission",
        &[
            "fnv1a",
            "model",
            "state",
            "placement",
            "jobspec",
            "lifecycle",
            "periodic-launch",
            "identity",
            "job-fields",
            "suggest",
            "workload-identity",
        ],
    ),
    (
        "dry-run",
        &["admission", "jobdiff", "model", "scheduler", "state"],
    ),
    ("lifecycle", &["model", "duration"]),
    ("service-watch", &["model"]),
    ("service-dns", &["model", "service-kit", "service-watch"]),
    ("node-session", &["model"]),
    ("linearizability", &[]),
    ("identity", &[]),
    ("authorization", &["identity"]),
    ("pki", &["identity"]),
    ("invariants", &["model", "state", "placement", "store"]),
    ("proto", &["model", "jobdiff", "job-fields"]),
    ("listing", &["model", "state"]),
    (
        "api-view",
        &[
            "model",
            "state",
            "placement",
            "rollout",
            "scheduler",
            "proto",
        ],
    ),
    (
        "event-stream",
        &["model", "state", "store", "proto", "api-view"],
    ),
    (
        "gateway-calls",
        &["identity", "node-session", "proto", "service-kit", "tls"],
    ),
    (
        "gateway-sources",
        &[
            "csi",
            "csi-node",
            "gateway-calls",
            "local-state",
            "model",
            "proto",
            "service-kit",
            "service-watch",
            "task-drivers",
            "task-runner",
            "template",
            "workload-identity",
        ],
    ),
    (
        "node-introduction",
        &[
            "blocking",
            "gateway-calls",
            "identity",
            "local-state",
            "pki",
            "proto",
            "service-kit",
            "tls",
        ],
    ),
    (
        "gateway-core",
        &[
            "model",
            "state",
            "store",
            "proto",
            "service-kit",
            "admission",
            "rollout",
            "listing",
        ],
    ),
    (
        "node-calls",
        &[
            "admission",
            "csi",
            "gateway-core",
            "identity",
            "node-connections",
            "proto",
            "service-kit",
        ],
    ),
    (
        "node-connections",
        &[
            "connections",
            "gateway-core",
            "identity",
            "model",
            "proto",
            "service-kit",
        ],
    ),
    (
        "dial-out",
        &[
            "connections",
            "gateway-calls",
            "identity",
            "local-state",
            "proto",
            "service-kit",
        ],
    ),
    (
        "keyring",
        &[
            "admission",
            "gateway-core",
            "listing",
            "model",
            "proto",
            "service-kit",
            "state",
            "store",
            "variable-locks",
            "workload-identity",
        ],
    ),
    (
        "variable-locks",
        &[
            "admission",
            "gateway-core",
            "model",
            "proto",
            "service-kit",
            "state",
            "store",
        ],
    ),
    (
        "csi-volumes",
        &[
            "admission",
            "api-view",
            "csi",
            "gateway-core",
            "model",
            "node-calls",
            "proto",
            "service-kit",
            "state",
        ],
    ),
    (
        "node-gateway",
        &[
            "admission",
            "api-view",
            "csi",
            "gateway-core",
            "identity",
            "keyring",
            "model",
            "node-calls",
            "node-session",
            "pki",
            "proto",
            "service-kit",
            "state",
            "store",
            "workload-identity",
        ],
    ),
    ("connections", &[]),
    ("nomad-json", &["duration", "proto"]),
    ("blocking", &[]),
    ("tls", &[]),
    (
        "store",
        &[
            "backoff",
            "model",
            "connections",
            "blocking",
            "state",
            "tls",
        ],
    ),
    ("embedded-etcd", &["connections", "blocking"]),
    ("task-drivers", &["duration", "model", "blocking"]),
    ("alloc-network", &["model", "service-kit"]),
    ("csi", &[]),
    ("alloc-files", &[]),
    ("csi-node", &["blocking", "csi", "model"]),
    ("csi-test-kit", &["csi"]),
    (
        "docker-driver",
        &["model", "blocking", "service-kit", "task-drivers"],
    ),
    (
        "driver-plugin",
        &[
            "backoff",
            "blocking",
            "model",
            "service-kit",
            "task-drivers",
        ],
    ),
    ("driver-plugin-test-kit", &["driver-plugin"]),
    ("fingerprint", &["model", "task-drivers"]),
    (
        "task-runner",
        &[
            "alloc-network",
            "artifact",
            "artifact-fetch",
            "consul",
            "consul-sync",
            "csi-node",
            "lifecycle",
            "local-state",
            "login-provider",
            "model",
            "connections",
            "blocking",
            "service-kit",
            "service-watch",
            "task-drivers",
            "task-consul",
            "task-vault",
            "template",
            "template-watch",
            "tls",
            "vault",
            "workload-identity",
        ],
    ),
    (
        "local-state",
        &["lifecycle", "model", "blocking", "pki", "service-kit"],
    ),
    (
        "service-kit",
        &[
            "fnv1a",
            "backoff",
            "connections",
            "blocking",
            "duration",
            "identity",
            "authorization",
            "suggest",
            "tls",
        ],
    ),
    ("process-log", &["proto", "service-kit"]),
    (
        "service-host",
        &[
            "process-log",
            "identity",
            "model",
            "connections",
            "proto",
            "service-kit",
            "state",
            "store",
            "tls",
        ],
    ),
    ("test-kit", &["model", "state"]),
    ("s3-test-kit", &[]),
    ("vault-test-kit", &[]),
    ("consul-test-kit", &[]),
    (
        "store-test-kit",
        &["embedded-etcd", "state", "store", "test-kit"],
    ),
    ("xtask", &[]),
    ("api-gateway", SERVICE),
    ("eval-broker", SERVICE),
    ("scheduler-worker", SERVICE),
    ("plan-applier", SERVICE),
    ("deployment-watcher", SERVICE),
    ("cluster-controller", SERVICE),
    ("client-node", SERVICE),
    (
        "kafila-client",
        &[
            "backoff",
            "identity",
            "connections",
            "proto",
            "job-fields",
            "tls",
        ],
    ),
    ("kafila", ANYTHING),
    ("integration-tests", ANYTHING),
    ("kafila-bench", ANYTHING),
    ("simulation", ANYTHING),
];

/// The crates that a service may use: all but other services.
const SERVICE: &[&str] = &[
    "admission",
    "process-log",
    "alloc-files",
    "alloc-network",
    "api-view",
    "applier",
    "artifact-fetch",
    "broker",
    "consul",
    "consul-sync",
    "controller",
    "cron",
    "csi",
    "csi-node",
    "csi-volumes",
    "dial-out",
    "docker-driver",
    "driver-plugin",
    "dry-run",
    "event-stream",
    "fingerprint",
    "gateway-calls",
    "gateway-core",
    "gateway-sources",
    "identity",
    "jobdiff",
    "jobspec",
    "keyring",
    "lifecycle",
    "listing",
    "local-state",
    "model",
    "connections",
    "node-calls",
    "node-connections",
    "node-gateway",
    "node-introduction",
    "node-session",
    "blocking",
    "periodic-launch",
    "pki",
    "placement",
    "proto",
    "authorization",
    "rollout",
    "scheduler",
    "service-dns",
    "service-host",
    "service-kit",
    "service-watch",
    "state",
    "store",
    "task-drivers",
    "task-consul",
    "task-runner",
    "task-vault",
    "tls",
    "vault",
    "template",
    "workload-identity",
];

const ANYTHING: &[&str] = &["*"];

/// Crates that neither a decider nor the model may pull in, at any depth: they would bring I/O, a
/// clock or the store into deciders.
const IMPURE: &[&str] = &["tokio", "tonic", "etcd-client", "hyper"];

const PURE: &[&str] = &[
    "artifact",
    "backoff",
    "model",
    "state",
    "cron",
    "hcl",
    "jobdiff",
    "jobspec",
    "job-fields",
    "placement",
    "scheduler",
    "applier",
    "broker",
    "rollout",
    "periodic-launch",
    "controller",
    "admission",
    "dry-run",
    "lifecycle",
    "linearizability",
    "listing",
    "identity",
    "node-session",
    "authorization",
    "template",
    "workload-identity",
];

/// # Errors
/// Every dependency that the table does not allow, by name.
pub(crate) fn check(metadata: &Value) -> Result<()> {
    let graph = Graph::read(metadata)?;
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    let mut wrong = Vec::new();
    for (name, dependencies) in &graph.members {
        let Some(may) = allowed.get(name.as_str()) else {
            wrong.push(format!(
                "{name}: not in xtask/src/layers.rs; say there what it may use"
            ));
            continue;
        };
        for dependency in dependencies {
            let ours = graph.members.contains_key(dependency);
            if ours && !may.contains(&dependency.as_str()) && *may != ANYTHING {
                wrong.push(format!("{name} must not depend on {dependency}"));
            }
        }
        if PURE.contains(&name.as_str()) {
            for impure in IMPURE.iter().filter(|impure| graph.reaches(name, impure)) {
                wrong.push(format!("{name} decides, so it must not pull in {impure}"));
            }
        }
    }
    if !wrong.is_empty() {
        bail!(
            "dependencies point the wrong way:\n  {}",
            wrong.join("\n  ")
        );
    }
    println!(
        "layers: {} crates, every dependency points down",
        graph.members.len()
    );
    Ok(())
}

/// The dependencies of every package, without dev- and build-dependencies.
struct Graph {
    /// Workspace crate → the crates it names, by name.
    members: BTreeMap<String, Vec<String>>,
    /// Package id → name, and the package ids it depends on.
    packages: BTreeMap<String, (String, Vec<String>)>,
}

impl Graph {
    fn read(metadata: &Value) -> Result<Self> {
        let names: BTreeMap<&str, &str> = array(metadata, "packages")?
            .iter()
            .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
            .collect();
        let mut packages = BTreeMap::new();
        for node in array(&metadata["resolve"], "nodes")? {
            let id = node["id"].as_str().context("a node without an id")?;
            let name = names.get(id).context("a node that is not a package")?;
            let dependencies: Vec<String> = array(node, "deps")?
                .iter()
                .filter(|dependency| is_normal(dependency))
                .filter_map(|dependency| dependency["pkg"].as_str().map(str::to_owned))
                .collect();
            packages.insert(id.to_owned(), ((*name).to_owned(), dependencies));
        }
        let mut members = BTreeMap::new();
        for id in array(metadata, "workspace_members")? {
            let id = id.as_str().context("a member without an id")?;
            let (name, dependencies) =
                packages.get(id).context("a member that is not a package")?;
            let named: Vec<String> = dependencies
                .iter()
                .filter_map(|dependency| names.get(dependency.as_str()))
                .map(|dependency| (*dependency).to_owned())
                .collect();
            members.insert(name.clone(), named);
        }
        Ok(Self { members, packages })
    }

    fn reaches(&self, member: &str, target: &str) -> bool {
        let mut open: Vec<&String> = self
            .packages
            .iter()
            .filter(|(_, (name, _))| name == member)
            .map(|(id, _)| id)
            .collect();
        let mut seen = std::collections::BTreeSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some((name, dependencies)) = self.packages.get(id) else {
                continue;
            };
            if name == target {
                return true;
            }
            open.extend(dependencies);
        }
        false
    }
}

fn is_normal(dependency: &Value) -> bool {
    dependency["dep_kinds"]
        .as_array()
        .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}
