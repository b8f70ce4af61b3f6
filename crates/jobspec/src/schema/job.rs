//! The job block.

use hcl::schema::{refused_argument, refused_block};
use job_fields::fields;
use serde_json::{Map, Value, json};

use super::extra::{Extra, default, items};
use super::task::inherit_vault;

pub(super) const JOB: Extra = Extra {
    blocks: &[
        // A task outside of a group becomes a group of its own name.
        ("task", "hcl:task", &fields::TASK),
        // The default of its tasks.
        ("vault", "hcl:vault", &fields::VAULT),
    ],
    refused: &[
        refused_block(
            "multiregion",
            "Multiregion",
            "register the job in each region",
        ),
        refused_block(
            "secret",
            "",
            "hand secrets to the task by a file that the node keeps",
        ),
        refused_argument("", "ConsulToken", "Consul is not used"),
        refused_argument(
            "",
            "VaultToken",
            "tasks log in to Vault with their identity",
        ),
    ],
    finish: Some(finish),
    ..Extra::labelled("Job", "name", "ID")
};

/// Names the job by its id unless it has a name, and lifts its own tasks into groups.
fn finish(job: &mut Map<String, Value>) -> Result<(), String> {
    let id = job.get("ID").and_then(Value::as_str).unwrap_or_default();
    let id = id.to_owned();
    default(job, "Name", &id);
    if job.get("Datacenters") == Some(&json!([])) {
        let detail = "Missing job datacenters: leave it out for all of them, [\"*\"]";
        return Err(detail.to_owned());
    }
    lift_job_tasks(job);
    let vault = job.remove("hcl:vault");
    let groups = items(job.get_mut("TaskGroups"));
    inherit_vault(
        vault,
        groups.flat_map(|group| items(group.get_mut("Tasks"))),
    )
}

/// Puts tasks outside of groups into groups of their own, before the declared groups.
fn lift_job_tasks(job: &mut Map<String, Value>) {
    let Some(Value::Array(tasks)) = job.remove("hcl:task") else {
        return;
    };
    let lifted = tasks
        .into_iter()
        .map(|task| json!({ "Name": task["Name"], "Tasks": [task] }));
    let mut groups: Vec<Value> = lifted.collect();
    if let Some(Value::Array(declared)) = job.remove("TaskGroups") {
        groups.extend(declared);
    }
    job.insert("TaskGroups".to_owned(), Value::Array(groups));
}
