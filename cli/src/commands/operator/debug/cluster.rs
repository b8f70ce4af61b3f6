//! The cluster in a debug archive: only fields that hold no secrets are copied.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::part::Part;
use crate::connection::Connection;
use crate::error::Error;
use crate::json::alloc::Allocation;
use crate::json::eval::Evaluation;
use crate::json::node::Node;
use crate::json::operator::{Leader, Process, SchedulerConfig};

/// Longest list of failed allocations and of evaluations: the newest.
const LISTED: usize = 100;

/// The state of the cluster, and what is needed to read its logs.
#[derive(Default)]
pub(super) struct Cluster {
    pub(super) parts: Vec<Part>,
    /// The services with leaders.
    pub(super) services: Vec<String>,
    /// Empty if a gateway did not list them.
    pub(super) processes: Vec<v1::Process>,
    /// Those with the newest failed allocations first, then those that are ready.
    pub(super) nodes: Vec<v1::Node>,
}

/// Asks the gateway for the state of the cluster.
pub(super) async fn state(connection: &Connection) -> Cluster {
    let version = connection.gateway_version().await;
    let leaders = connection.leaders().await;
    let processes = connection.processes().await;
    let config = connection.scheduler_config().await;
    let nodes = connection.all_nodes().await;
    let jobs = connection.jobs("*", "", 0).await;
    let allocs = connection.all_allocations().await;
    let evals = connection
        .evaluations(connection.options("*"), "", "")
        .await;
    let evals = evals.map(|(evals, _)| evals);
    let deployments = connection.deployments("*", "", 0).await;
    let known = leaders.as_deref().unwrap_or_default();
    let services = known.iter().map(|leader| leader.service.clone()).collect();
    let known_nodes = by_interest(
        nodes.as_deref().unwrap_or_default(),
        allocs.as_deref().unwrap_or_default(),
    );
    let known_processes = processes.as_deref().unwrap_or_default().to_vec();
    let parts = vec![
        Part::json(
            "gateway.json",
            version.map(|version| json!({ "Version": version })),
        ),
        Part::json(
            "leaders.json",
            leaders.map(|leaders| json!(leaders.iter().map(Leader::from).collect::<Vec<_>>())),
        ),
        Part::json(
            "processes.json",
            processes.map(|all| json!(all.iter().map(Process::from).collect::<Vec<_>>())),
        ),
        Part::json(
            "scheduler-config.json",
            config.map(|config| json!(SchedulerConfig::from(&config))),
        ),
        counted("jobs.json", &jobs, |job| {
            format!("{} {}", job.r#type, job.status)
        }),
        counted("nodes-count.json", &nodes, |node| {
            format!("{} {}", node.status, node.eligibility)
        }),
        counted("allocations.json", &allocs, |alloc| {
            alloc.client_status.clone()
        }),
        counted("evaluations.json", &evals, |eval| {
            format!("{} {}", eval.status, eval.triggered_by)
        }),
        counted("deployments.json", &deployments, |deployment| {
            deployment.status.clone()
        }),
        listed("nodes.json", nodes, |_| true, node),
        listed("failed-allocations.json", allocs, is_failed, alloc),
        listed("open-evaluations.json", evals, is_open, eval),
    ];
    Cluster {
        parts,
        services,
        processes: known_processes,
        nodes: known_nodes,
    }
}

/// Returns the nodes of the newest failed allocations, then the others; those that are down last.
fn by_interest(nodes: &[v1::Node], allocs: &[v1::Allocation]) -> Vec<v1::Node> {
    let mut newest = BTreeMap::<&str, u64>::new();
    for alloc in allocs.iter().filter(|alloc| is_failed(alloc)) {
        let index = newest.entry(&alloc.node_id).or_default();
        *index = alloc.modify_index.max(*index);
    }
    let mut nodes = nodes.to_vec();
    nodes.sort_by_key(|node| {
        let failed = newest.get(node.id.as_str()).copied().unwrap_or_default();
        (node.status == "down", std::cmp::Reverse(failed))
    });
    nodes
}

/// Counts objects by what `key` returns.
fn counted<T>(name: &str, objects: &Result<Vec<T>, Error>, key: impl Fn(&T) -> String) -> Part {
    let content = match objects {
        Ok(objects) => {
            let mut counts = BTreeMap::<String, u64>::new();
            for object in objects {
                *counts.entry(key(object)).or_default() += 1;
            }
            Ok(format!("{:#}", json!(counts)).into_bytes())
        }
        Err(error) => Err(error.to_string()),
    };
    Part::new(name, content)
}

/// Lists the newest objects that `is_wanted` accepts; the lists of the gateway begin with the oldest.
fn listed<T>(
    name: &str,
    objects: Result<Vec<T>, Error>,
    is_wanted: impl Fn(&T) -> bool,
    show: impl Fn(&T) -> Value,
) -> Part {
    let shown = objects.map(|objects| {
        let newest = objects.iter().rev().filter(|object| is_wanted(object));
        newest.take(LISTED).map(show).collect::<Value>()
    });
    Part::json(name, shown)
}

/// Returns the fields of an object as `-json` prints it that an archive has; absent: they are empty.
fn chosen(object: &impl Serialize, keys: &[&str]) -> Map<String, Value> {
    let Ok(Value::Object(mut object)) = serde_json::to_value(object) else {
        return Map::new();
    };
    object.retain(|key, _| keys.contains(&key.as_str()));
    object
}

const NODE_KEYS: &[&str] = &[
    "ID",
    "Name",
    "Datacenter",
    "NodePool",
    "Status",
    "StatusDescription",
    "SchedulingEligibility",
    "Drain",
    "ModifyIndex",
];

const ALLOC_KEYS: &[&str] = &[
    "ID",
    "Namespace",
    "JobID",
    "JobVersion",
    "TaskGroup",
    "NodeID",
    "ClientStatus",
    "DesiredStatus",
    "ModifyIndex",
];

const EVAL_KEYS: &[&str] = &[
    "ID",
    "Namespace",
    "JobID",
    "Type",
    "Priority",
    "TriggeredBy",
    "Status",
    "StatusDescription",
    "QueuedAllocations",
    "SnapshotIndex",
    "ModifyIndex",
];

/// Attributes and metadata are left out: operators write them.
fn node(node: &v1::Node) -> Value {
    let drivers = node.drivers.iter();
    let drivers: BTreeMap<&String, bool> = drivers.map(|(name, it)| (name, it.healthy)).collect();
    let mut shown = chosen(&Node::from(node), NODE_KEYS);
    shown.insert("HealthyDrivers".to_owned(), json!(drivers));
    shown.into()
}

fn is_failed(alloc: &v1::Allocation) -> bool {
    matches!(alloc.client_status.as_str(), "failed" | "lost" | "unknown")
}

fn alloc(alloc: &v1::Allocation) -> Value {
    let tasks = alloc.task_states.iter().map(|(name, task)| {
        // Messages may quote commands and templates, so only the kinds of the events are kept.
        let events: Vec<&str> = task
            .events
            .iter()
            .map(|event| event.r#type.as_str())
            .collect();
        let shown = json!({
            "State": task.state,
            "Failed": task.failed,
            "Restarts": task.restarts,
            "Events": events,
        });
        (name.clone(), shown)
    });
    let mut shown = chosen(&Allocation::from(alloc), ALLOC_KEYS);
    shown.insert("Tasks".to_owned(), tasks.collect::<Map<_, _>>().into());
    shown.into()
}

fn is_open(eval: &v1::Evaluation) -> bool {
    matches!(eval.status.as_str(), "pending" | "blocked" | "failed")
}

fn eval(eval: &v1::Evaluation) -> Value {
    chosen(&Evaluation::from(eval), EVAL_KEYS).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn the_fields_of_an_archive_are_those_of_json_output() {
        let node = chosen(&Node::from(&fixtures::node()), NODE_KEYS);
        assert_eq!(node.len(), NODE_KEYS.len());
        let alloc = chosen(&Allocation::from(&fixtures::alloc()), ALLOC_KEYS);
        assert_eq!(alloc.len(), ALLOC_KEYS.len());
        let eval = v1::Evaluation {
            status_description: "waits".to_owned(),
            queued_allocations: [("web".to_owned(), 1)].into(),
            ..v1::Evaluation::default()
        };
        let eval = chosen(&Evaluation::from(&eval), EVAL_KEYS);
        assert_eq!(eval.len(), EVAL_KEYS.len());
    }
}
