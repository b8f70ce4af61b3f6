//! Namespaces.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Namespace<'a> {
    name: &'a str,
    description: &'a str,
    meta: BTreeMap<&'a str, &'a str>,
    capabilities: Option<Capabilities<'a>>,
    node_pool_configuration: Option<NodePoolConfiguration<'a>>,
    create_index: u64,
    modify_index: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Capabilities<'a> {
    /// Empty: every driver.
    enabled_task_drivers: &'a [String],
    disabled_task_drivers: &'a [String],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodePoolConfiguration<'a> {
    default: &'a str,
    /// `null`: every pool that is not denied.
    allowed: Option<&'a [String]>,
    denied: &'a [String],
}

impl<'a> From<&'a v1::Namespace> for Namespace<'a> {
    fn from(namespace: &'a v1::Namespace) -> Self {
        let words = namespace.meta.iter();
        let capabilities = namespace.capabilities.as_ref();
        let rules = namespace.node_pool_configuration.as_ref();
        Self {
            name: &namespace.name,
            description: &namespace.description,
            meta: words.map(|(key, value)| (&**key, &**value)).collect(),
            capabilities: capabilities.map(|it| Capabilities {
                enabled_task_drivers: &it.enabled_task_drivers,
                disabled_task_drivers: &it.disabled_task_drivers,
            }),
            node_pool_configuration: rules.map(|it| NodePoolConfiguration {
                default: &it.default,
                allowed: it.allowed.as_ref().map(|it| &it.patterns[..]),
                denied: &it.denied,
            }),
            create_index: namespace.create_index,
            modify_index: namespace.modify_index,
        }
    }
}
