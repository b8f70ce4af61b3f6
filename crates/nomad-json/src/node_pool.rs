//! Node pools, as they are shown and as they are applied.

use std::collections::BTreeMap;

use proto::v1;
use serde::{Deserialize, Serialize};

/// The output can be applied again: the indexes are ignored then.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct NodePool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    meta: Option<BTreeMap<String, String>>,
    #[serde(default)]
    scheduler_configuration: Option<SchedulerConfiguration>,
    #[serde(default)]
    create_index: u64,
    #[serde(default)]
    modify_index: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct SchedulerConfiguration {
    /// Empty: the cluster's.
    #[serde(default)]
    scheduler_algorithm: String,
    #[serde(default)]
    memory_oversubscription_enabled: Option<bool>,
}

impl From<&v1::NodePool> for NodePool {
    fn from(pool: &v1::NodePool) -> Self {
        let of_pool = pool.scheduler_configuration.clone();
        Self {
            name: pool.name.clone(),
            description: pool.description.clone(),
            meta: Some(pool.meta.clone().into_iter().collect()),
            scheduler_configuration: of_pool.map(|it| SchedulerConfiguration {
                scheduler_algorithm: it.scheduler_algorithm,
                memory_oversubscription_enabled: it.memory_oversubscription_enabled,
            }),
            create_index: pool.create_index,
            modify_index: pool.modify_index,
        }
    }
}

impl From<NodePool> for v1::NodePool {
    fn from(pool: NodePool) -> Self {
        let configuration = pool.scheduler_configuration;
        Self {
            name: pool.name,
            description: pool.description,
            meta: pool.meta.unwrap_or_default().into_iter().collect(),
            scheduler_configuration: configuration.map(|it| v1::NodePoolSchedulerConfiguration {
                scheduler_algorithm: it.scheduler_algorithm,
                memory_oversubscription_enabled: it.memory_oversubscription_enabled,
            }),
            ..Self::default()
        }
    }
}
