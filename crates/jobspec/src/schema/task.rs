//! Tasks, their resources, devices, mounts and logs.

use hcl::schema::{Ignored, refused_argument, refused_block};
use serde_json::{Map, Value};

use super::extra::{Extra, default, default_duration};

pub(super) const ACTION: Extra = Extra::labelled("Action", "name", "Name");

pub(super) const TASK: Extra = Extra {
    refused: &[
        refused_block(
            "secret",
            "Secrets",
            "hand secrets to the task by a file that the node keeps",
        ),
        refused_block(
            "schedule",
            "Schedule",
            "register and stop the job from cron",
        ),
        refused_argument("kind", "Kind", "remove it, Consul Connect is not used"),
    ],
    finish: Some(split_identities),
    ..Extra::labelled("Task", "name", "Name")
};

/// Moves the default identity, which needs no name, from the list to the field of its own.
fn split_identities(task: &mut Map<String, Value>) -> Result<(), String> {
    let Some(Value::Array(identities)) = task.remove("Identities") else {
        return Ok(());
    };
    let is_default = |identity: &Value| {
        let name = identity["Name"].as_str().unwrap_or_default();
        name.is_empty() || name == job_fields::Identity::DEFAULT_NAME
    };
    let (mut default, named): (Vec<_>, Vec<_>) = identities.into_iter().partition(is_default);
    if default.len() > 1 || (default.len() == 1 && task.contains_key("Identity")) {
        return Err("there are two default identities: give one of them a name".to_owned());
    }
    if let Some(default) = default.pop() {
        task.insert("Identity".to_owned(), default);
    }
    if !named.is_empty() {
        task.insert("Identities".to_owned(), Value::Array(named));
    }
    Ok(())
}

/// Source: `nomad job run -output` writes these defaults.
pub(super) const VAULT: Extra = Extra {
    finish: Some(|vault| {
        default(vault, "ChangeMode", "restart");
        if vault.get("Env").is_none_or(Value::is_null) {
            vault.insert("Env".to_owned(), true.into());
        }
        Ok(())
    }),
    ..Extra::of("Vault")
};

/// Gives the vault block of a job or group to its tasks without one of their own.
pub(super) fn inherit_vault<'a>(
    vaults: Option<Value>,
    tasks: impl Iterator<Item = &'a mut Value>,
) -> Result<(), String> {
    let Some(Value::Array(mut vaults)) = vaults else {
        return Ok(());
    };
    let Some(vault) = vaults.pop() else {
        return Ok(());
    };
    if !vaults.is_empty() {
        return Err("there are two vault blocks: keep one of them".to_owned());
    }
    for task in tasks.filter_map(Value::as_object_mut) {
        task.entry("Vault").or_insert_with(|| vault.clone());
    }
    Ok(())
}

/// The resource that a scaling block of a task is about: label → type.
const SCALED: [(&str, &str); 2] = [("cpu", "vertical_cpu"), ("mem", "vertical_mem")];

pub(super) const TASK_SCALING: Extra = Extra {
    finish: Some(|scaling| {
        let label = scaling.get("Type").and_then(Value::as_str);
        let label = label.unwrap_or_default();
        let Some((_, scaled)) = SCALED.iter().find(|(name, _)| *name == label) else {
            return Err(format!(
                "scaling of a task is for \"cpu\" or \"mem\"; got {label:?}: write scaling \"cpu\" {{ … }}"
            ));
        };
        scaling.insert("Type".to_owned(), (*scaled).into());
        Ok(())
    }),
    ..Extra::labelled("TaskScaling", "resource", "Type")
};

/// Source: `nomad job run -output` writes these defaults, other than those of most blocks.
pub(super) const TEMPLATE: Extra = Extra {
    finish: Some(|template| {
        default(template, "ChangeMode", "restart");
        default(template, "Perms", "0644");
        default_duration(template, "Splay", FIVE_SECONDS_NS);
        Ok(())
    }),
    ..Extra::of("Template")
};

pub(super) const CHANGE_SCRIPT: Extra = Extra {
    refused: &[refused_argument(
        "run_on_first_render",
        "RunOnFirstRender",
        "remove it, and run the command in the task itself, before its program",
    )],
    finish: Some(|script| {
        default_duration(script, "Timeout", FIVE_SECONDS_NS);
        Ok(())
    }),
    ..Extra::of("ChangeScript")
};

const FIVE_SECONDS_NS: i64 = 5_000_000_000;

pub(super) const RESOURCES: Extra = Extra {
    refused: &[
        refused_argument("secrets", "SecretsMB", "remove it"),
        refused_block("numa", "NUMA", "remove it"),
    ],
    ignored: &[Ignored {
        name: "iops",
        json: "IOPS",
        warning: "iops in a resources block is deprecated and ignored: remove it",
    }],
    ..Extra::of("Resources")
};

pub(super) const DEVICE_REQUEST: Extra = Extra::labelled("DeviceRequest", "name", "Name");

pub(super) const VOLUME_MOUNT: Extra = Extra {
    refused: &[refused_argument(
        "selinux_label",
        "SELinuxLabel",
        "label the directory on the node",
    )],
    ..Extra::of("VolumeMount")
};

pub(super) const LOG_CONFIG: Extra = Extra {
    refused: &[refused_argument(
        "enabled",
        "Enabled",
        "write disabled = true or false instead",
    )],
    ..Extra::of("LogConfig")
};
