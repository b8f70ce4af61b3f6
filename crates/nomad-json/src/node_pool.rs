//! Node pools.

use std::collections::BTreeMap;

use proto::v1;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct NodePool<'a> {
    name: &'a str,
    description: &'a str,
    meta: BTreeMap<&'a str, &'a str>,
    scheduler_configuration: Option<SchedulerConfiguration<'a>>,
    create_index: u64,
    modify_index: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct SchedulerConfiguration<'a> {
    /// Empty: the cluster's.
    scheduler_algorithm: &'a str,
    memory_oversubscription_enabled: Option<bool>,
}

impl<'a> From<&'a v1::NodePool> for NodePool<'a> {
    fn from(pool: &'a v1::NodePool) -> Self {
        let words = pool.meta.iter();
        let of_pool = pool.scheduler_configuration.as_ref();
        Self {
            name: &pool.name,
            description: &pool.description,
            meta: words.map(|(key, value)| (&**key, &**value)).collect(),
            scheduler_configuration: of_pool.map(|it| SchedulerConfiguration {
                scheduler_algorithm: &it.scheduler_algorithm,
                memory_oversubscription_enabled: it.memory_oversubscription_enabled,
            }),
            create_index: pool.create_index,
            modify_index: pool.modify_index,
        }
    }
}
