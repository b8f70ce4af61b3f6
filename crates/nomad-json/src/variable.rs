//! Variables, as they are shown and as files describe them.

use std::collections::BTreeMap;

use proto::v1;
use serde::de::IgnoredAny;
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
    /// Nomad shows it with locked variables.
    #[serde(default, rename = "Lock", skip_serializing)]
    _lock: IgnoredAny,
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
            _lock: IgnoredAny,
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
        }
    }
}
