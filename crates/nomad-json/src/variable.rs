//! Variables, as they are shown and as files describe them.

use std::collections::BTreeMap;

use proto::v1;
use serde::{Deserialize, Serialize};

/// A variable with its items. The output can be stored again: times are ignored then.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Variable {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    create_index: u64,
    #[serde(default)]
    modify_index: u64,
    /// Unix nanoseconds, as for `modify_time`.
    #[serde(default)]
    create_time: u64,
    #[serde(default)]
    modify_time: u64,
    #[serde(default)]
    items: BTreeMap<String, String>,
    /// Shown while the variable is locked; ignored in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lock: Option<VariableLock>,
}

/// The lock of a variable. Source: Nomad's names and form of durations.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct VariableLock {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "TTL")]
    ttl: String,
    #[serde(rename = "LockDelay")]
    delay: String,
}

impl From<&v1::Variable> for Variable {
    fn from(variable: &v1::Variable) -> Self {
        let items = variable.items.clone();
        Self {
            namespace: variable.namespace.clone(),
            path: variable.path.clone(),
            create_index: variable.create_index,
            modify_index: variable.modify_index,
            create_time: variable.create_time_ns,
            modify_time: variable.modify_time_ns,
            items: items.into_iter().collect(),
            lock: lock(variable),
        }
    }
}

impl From<Variable> for v1::Variable {
    fn from(variable: Variable) -> Self {
        Self {
            namespace: variable.namespace,
            path: variable.path,
            items: variable.items.into_iter().collect(),
            modify_index: variable.modify_index,
            ..Self::default()
        }
    }
}

/// A variable of a list, without its items.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct VariableMetadata<'a> {
    namespace: &'a str,
    path: &'a str,
    create_index: u64,
    modify_index: u64,
    create_time: u64,
    modify_time: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<VariableLock>,
}

impl<'a> From<&'a v1::Variable> for VariableMetadata<'a> {
    fn from(variable: &'a v1::Variable) -> Self {
        Self {
            namespace: &variable.namespace,
            path: &variable.path,
            create_index: variable.create_index,
            modify_index: variable.modify_index,
            create_time: variable.create_time_ns,
            modify_time: variable.modify_time_ns,
            lock: lock(variable),
        }
    }
}

fn lock(variable: &v1::Variable) -> Option<VariableLock> {
    let lock = variable.lock.as_ref()?;
    let text = |duration: Option<prost_types::Duration>| {
        let duration = duration.unwrap_or_default();
        duration::show(std::time::Duration::new(
            duration.seconds.unsigned_abs(),
            duration.nanos.unsigned_abs(),
        ))
    };
    Some(VariableLock {
        id: lock.lock_id.clone(),
        ttl: text(lock.ttl),
        delay: text(lock.delay),
    })
}
