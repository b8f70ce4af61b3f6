//! Namespaces, as they are shown and as they are applied.

use std::collections::BTreeMap;

use proto::v1;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The fix for a namespace with a quota.
pub const NO_QUOTAS: &str = "a namespace may use the whole cluster; remove it";

/// The output can be applied again: the indexes are ignored then.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Namespace {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    meta: Option<BTreeMap<String, String>>,
    #[serde(default)]
    capabilities: Option<Capabilities>,
    #[serde(default)]
    node_pool_configuration: Option<NodePoolConfiguration>,
    /// Nomad shows it with every namespace; only an empty one is accepted.
    #[serde(default, skip_serializing)]
    quota: String,
    #[serde(default, rename = "Hash", skip_serializing)]
    _hash: IgnoredAny,
    #[serde(default)]
    create_index: u64,
    #[serde(default)]
    modify_index: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Capabilities {
    /// Empty: every driver.
    #[serde(default)]
    enabled_task_drivers: Option<Vec<String>>,
    #[serde(default)]
    disabled_task_drivers: Option<Vec<String>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct NodePoolConfiguration {
    #[serde(default)]
    default: String,
    /// `null`: every pool that is not denied.
    #[serde(default)]
    allowed: Option<Vec<String>>,
    #[serde(default)]
    denied: Option<Vec<String>>,
}

impl From<&v1::Namespace> for Namespace {
    fn from(namespace: &v1::Namespace) -> Self {
        let meta = namespace.meta.clone();
        let capabilities = namespace.capabilities.clone();
        let rules = namespace.node_pool_configuration.clone();
        Self {
            name: namespace.name.clone(),
            description: namespace.description.clone(),
            meta: Some(meta.into_iter().collect()),
            capabilities: capabilities.map(|it| Capabilities {
                enabled_task_drivers: Some(it.enabled_task_drivers),
                disabled_task_drivers: Some(it.disabled_task_drivers),
            }),
            node_pool_configuration: rules.map(|it| NodePoolConfiguration {
                default: it.default,
                allowed: it.allowed.map(|it| it.patterns),
                denied: Some(it.denied),
            }),
            quota: String::new(),
            _hash: IgnoredAny,
            create_index: namespace.create_index,
            modify_index: namespace.modify_index,
        }
    }
}

impl TryFrom<Namespace> for v1::Namespace {
    type Error = String;

    /// # Errors
    /// The namespace has a quota.
    fn try_from(namespace: Namespace) -> Result<Self, String> {
        if !namespace.quota.is_empty() {
            return Err(format!("quotas are not supported: {NO_QUOTAS} (\"Quota\")"));
        }
        let rules = namespace.node_pool_configuration;
        Ok(Self {
            name: namespace.name,
            description: namespace.description,
            meta: namespace.meta.unwrap_or_default().into_iter().collect(),
            capabilities: namespace.capabilities.map(|it| v1::NamespaceCapabilities {
                enabled_task_drivers: it.enabled_task_drivers.unwrap_or_default(),
                disabled_task_drivers: it.disabled_task_drivers.unwrap_or_default(),
            }),
            node_pool_configuration: rules.map(|it| v1::NamespaceNodePoolConfiguration {
                default: it.default,
                allowed: it.allowed.map(|patterns| v1::NodePoolPatterns { patterns }),
                denied: it.denied.unwrap_or_default(),
            }),
            ..Self::default()
        })
    }
}
