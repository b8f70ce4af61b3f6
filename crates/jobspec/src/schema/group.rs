//! Groups, their networks and disks, and the task that stands right in a job.

use serde_json::{Map, Value, json};

use super::launches::SCALING;
use super::policies::{DISCONNECT, MIGRATE, RESCHEDULE, RESTART, UPDATE};
use super::rank::{AFFINITY, CONSTRAINT, SPREAD};
use super::task::{self, TASK};
use super::{
    Child, Form, Ignored, Kind, Label, Repeat, Schema, attribute, many, once, plain,
    refused_argument, refused_block,
};

pub(super) static GROUP: Schema = Schema {
    name: "group",
    label: Some(Label {
        noun: "name",
        json: "Name",
    }),
    attributes: &[
        attribute("count", "Count", Kind::Whole),
        attribute("shutdown_delay", "ShutdownDelay", Kind::Span),
        attribute("max_run_duration", "MaxRunDuration", Kind::Span),
        attribute("meta", "Meta", Kind::TextMap),
    ],
    blocks: &[
        many(&TASK, "Tasks"),
        many(&CONSTRAINT, "Constraints"),
        many(&AFFINITY, "Affinities"),
        many(&SPREAD, "Spreads"),
        many(&NETWORK, "Networks"),
        once(&RESTART, "RestartPolicy"),
        once(&RESCHEDULE, "ReschedulePolicy"),
        once(&UPDATE, "Update"),
        once(&MIGRATE, "Migrate"),
        once(&DISCONNECT, "Disconnect"),
        once(&EPHEMERAL_DISK, "EphemeralDisk"),
        once(&SCALING, "Scaling"),
        Child {
            schema: &VOLUME,
            json: "hcl:volume",
            repeat: Repeat::Many,
            form: Form::Hcl,
        },
        Child {
            schema: &VOLUME,
            json: "Volumes",
            repeat: Repeat::Named,
            form: Form::Api,
        },
    ],
    refused: &[
        refused_block(
            "service",
            "Services",
            "remove it and let clients find the port by `kafila alloc status`, or by a static \
             port",
        ),
        refused_block("consul", "Consul", "remove it, Consul is not used"),
        refused_block(
            "vault",
            "",
            "hand secrets to the task by a file that the node keeps",
        ),
        refused_block(
            "secret",
            "Secrets",
            "hand secrets to the task by a file that the node keeps",
        ),
        refused_argument(
            "stop_after_client_disconnect",
            "StopAfterClientDisconnect",
            "write disconnect { stop_on_client_after = … } instead",
        ),
        refused_argument(
            "max_client_disconnect",
            "MaxClientDisconnect",
            "write disconnect { lost_after = … } instead",
        ),
        refused_argument(
            "prevent_reschedule_on_lost",
            "PreventRescheduleOnLost",
            "write disconnect { replace = false } instead",
        ),
    ],
    ignored: &[],
    finish: Some(name_volumes),
};

/// A task right in a job: it becomes a group of its own name.
pub(super) static JOB_TASK: Schema = Schema {
    name: "task",
    label: Some(Label {
        noun: "name",
        json: "Name",
    }),
    attributes: task::ATTRIBUTES,
    blocks: task::BLOCKS,
    refused: task::REFUSED,
    ignored: &[],
    finish: None,
};

/// Puts the tasks that stand right in a job into groups of their own, before the declared groups.
pub(super) fn lift_job_tasks(job: &mut Map<String, Value>) -> Result<(), String> {
    let Some(Value::Array(tasks)) = job.remove("hcl:task") else {
        return Ok(());
    };
    let lifted = tasks
        .into_iter()
        .map(|task| json!({ "Name": task["Name"], "Tasks": [task] }));
    let mut groups: Vec<Value> = lifted.collect();
    if let Some(Value::Array(declared)) = job.remove("TaskGroups") {
        groups.extend(declared);
    }
    job.insert("TaskGroups".to_owned(), Value::Array(groups));
    Ok(())
}

static EPHEMERAL_DISK: Schema = plain(
    "ephemeral_disk",
    &[
        attribute("size", "SizeMB", Kind::Whole),
        attribute("sticky", "Sticky", Kind::Flag),
        attribute("migrate", "Migrate", Kind::Flag),
    ],
);

static VOLUME: Schema = Schema {
    name: "volume",
    label: Some(Label {
        noun: "name",
        json: "Name",
    }),
    attributes: &[
        attribute("type", "Type", Kind::Text),
        attribute("source", "Source", Kind::Text),
        attribute("read_only", "ReadOnly", Kind::Flag),
        attribute("sticky", "Sticky", Kind::Flag),
        attribute("per_alloc", "PerAlloc", Kind::Flag),
        attribute("access_mode", "AccessMode", Kind::Text),
        attribute("attachment_mode", "AttachmentMode", Kind::Text),
    ],
    blocks: &[],
    refused: &[refused_block(
        "mount_options",
        "MountOptions",
        "remove it, host volumes are directories",
    )],
    ignored: &[],
    finish: None,
};

/// Brings a group's volumes into the API's form: by name.
fn name_volumes(group: &mut Map<String, Value>) -> Result<(), String> {
    let Some(Value::Array(volumes)) = group.remove("hcl:volume") else {
        return Ok(());
    };
    let mut named = Map::new();
    for volume in volumes {
        let name = volume["Name"].as_str().unwrap_or_default().to_owned();
        if named.insert(name.clone(), volume).is_some() {
            return Err(format!(
                "there are two volumes {name:?}: rename one of them"
            ));
        }
    }
    group.insert("Volumes".to_owned(), Value::Object(named));
    Ok(())
}

static NETWORK: Schema = Schema {
    name: "network",
    label: None,
    attributes: &[attribute("mode", "Mode", Kind::Text)],
    blocks: &[
        Child {
            schema: &PORT,
            json: "hcl:port",
            repeat: Repeat::Many,
            form: Form::Hcl,
        },
        Child {
            schema: &PORT,
            json: "ReservedPorts",
            repeat: Repeat::Many,
            form: Form::Api,
        },
        Child {
            schema: &PORT,
            json: "DynamicPorts",
            repeat: Repeat::Many,
            form: Form::Api,
        },
    ],
    refused: &[
        refused_argument(
            "hostname",
            "Hostname",
            "remove it, tasks see the node's hostname",
        ),
        refused_argument(
            "device",
            "Device",
            "remove it, the node chooses its interface",
        ),
        refused_argument("cidr", "CIDR", "remove it, the node chooses its address"),
        refused_argument("ip", "IP", "remove it, the node chooses its address"),
        refused_block("dns", "DNS", "remove it, tasks use the node's resolver"),
        refused_block("cni", "CNI", "remove it, tasks use the node's network"),
    ],
    ignored: &[Ignored {
        name: "mbits",
        json: "MBits",
        warning: "mbits in a network block is deprecated and ignored: remove it",
    }],
    finish: Some(sort_ports),
};

static PORT: Schema = Schema {
    name: "port",
    label: Some(Label {
        noun: "label",
        json: "Label",
    }),
    attributes: &[
        attribute("static", "Value", Kind::Whole),
        attribute("to", "To", Kind::Whole),
        attribute("host_network", "HostNetwork", Kind::Text),
        attribute("ignore_collision", "IgnoreCollision", Kind::Flag),
    ],
    blocks: &[],
    refused: &[],
    ignored: &[],
    finish: None,
};

/// Tells fixed ports from dynamic ones; `static = 0` is a dynamic port.
fn sort_ports(network: &mut Map<String, Value>) -> Result<(), String> {
    let Some(Value::Array(ports)) = network.remove("hcl:port") else {
        return Ok(());
    };
    let is_fixed = |port: &Value| {
        port.get("Value")
            .is_some_and(|value| value.as_i64() != Some(0))
    };
    let (fixed, dynamic) = ports.into_iter().partition(is_fixed);
    network.insert("ReservedPorts".to_owned(), Value::Array(fixed));
    network.insert("DynamicPorts".to_owned(), Value::Array(dynamic));
    Ok(())
}
