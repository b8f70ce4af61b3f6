//! Groups, their volumes, networks and ports.

use hcl::schema::{refused_argument, refused_block};
use job_fields::fields;
use serde_json::{Map, Value};

use super::extra::{Extra, items};
use super::task::inherit_vault;

pub(super) const TASK_GROUP: Extra = Extra {
    // The default of its tasks.
    blocks: &[("vault", "hcl:vault", &fields::VAULT)],
    refused: &[
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
    finish: Some(|group| {
        let vault = group.remove("hcl:vault");
        inherit_vault(vault, items(group.get_mut("Tasks")))?;
        name_volumes(group)
    }),
    ..Extra::labelled("TaskGroup", "name", "Name")
};

pub(super) const VOLUME_REQUEST: Extra = Extra::labelled("VolumeRequest", "name", "Name");

/// Brings a group's volumes into the API's form: by name.
fn name_volumes(group: &mut Map<String, Value>) -> Result<(), String> {
    let Some(Value::Array(volumes)) = group.remove("Volumes") else {
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

pub(super) const NETWORK: Extra = Extra {
    refused: &[
        refused_argument(
            "device",
            "Device",
            "remove it, the node chooses its interface",
        ),
        refused_argument("cidr", "CIDR", "remove it, the node chooses its address"),
        refused_argument("ip", "IP", "remove it, the node chooses its address"),
    ],
    finish: Some(sort_ports),
    ..Extra::of("Network")
};

pub(super) const PORT: Extra = Extra::labelled("Port", "label", "Label");

/// Splits ports into static and dynamic ones; `static = 0` is a dynamic port.
fn sort_ports(network: &mut Map<String, Value>) -> Result<(), String> {
    let Some(Value::Array(ports)) = network.remove("ReservedPorts") else {
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
