//! Namespaces.

use model::namespace::{Capabilities, NodePoolRules};
use model::{FieldErrors, Indexed, Namespace};

use crate::fields::{At as _, Read};
use crate::v1;

impl TryFrom<v1::Namespace> for Namespace {
    type Error = FieldErrors;

    fn try_from(wire: v1::Namespace) -> Result<Self, FieldErrors> {
        read(wire).at("namespace")
    }
}

fn read(wire: v1::Namespace) -> Read<Namespace> {
    let capabilities = wire.capabilities.unwrap_or_default();
    let node_pools = wire.node_pool_configuration.unwrap_or_default();
    let namespace = Namespace {
        name: wire.name,
        description: wire.description,
        meta: wire.meta.into_iter().collect(),
        capabilities: Capabilities {
            enabled_task_drivers: capabilities.enabled_task_drivers,
            disabled_task_drivers: capabilities.disabled_task_drivers,
        },
        node_pools: NodePoolRules {
            default: node_pools.default,
            allowed: node_pools.allowed.map(|allowed| allowed.patterns),
            denied: node_pools.denied,
        },
        deleting: false,
    };
    namespace.check()?;
    Ok(namespace)
}

impl From<&Namespace> for v1::Namespace {
    fn from(namespace: &Namespace) -> Self {
        let capabilities = &namespace.capabilities;
        let capabilities = (!capabilities.is_empty()).then(|| v1::NamespaceCapabilities {
            enabled_task_drivers: capabilities.enabled_task_drivers.clone(),
            disabled_task_drivers: capabilities.disabled_task_drivers.clone(),
        });
        let rules = &namespace.node_pools;
        let rules = (!rules.is_empty()).then(|| v1::NamespaceNodePoolConfiguration {
            default: rules.default.clone(),
            allowed: rules
                .allowed
                .clone()
                .map(|patterns| v1::NodePoolPatterns { patterns }),
            denied: rules.denied.clone(),
        });
        Self {
            name: namespace.name.clone(),
            description: namespace.description.clone(),
            meta: namespace.meta.clone().into_iter().collect(),
            capabilities,
            node_pool_configuration: rules,
            create_index: 0,
            modify_index: 0,
        }
    }
}

impl From<&Indexed<Namespace>> for v1::Namespace {
    fn from(namespace: &Indexed<Namespace>) -> Self {
        Self {
            create_index: namespace.create_index,
            modify_index: namespace.modify_index,
            ..Self::from(&namespace.value)
        }
    }
}
