//! Node pools.

use model::{FieldErrors, Indexed, NodePool, PoolConfiguration};

use crate::fields::{At as _, Read};
use crate::scheduler_config::algorithm;
use crate::v1;

impl TryFrom<v1::NodePool> for NodePool {
    type Error = FieldErrors;

    fn try_from(wire: v1::NodePool) -> Result<Self, FieldErrors> {
        read(wire).at("node_pool")
    }
}

fn read(wire: v1::NodePool) -> Read<NodePool> {
    let of_pool = wire.scheduler_configuration.unwrap_or_default();
    let pool = NodePool {
        name: wire.name,
        description: wire.description,
        meta: wire.meta.into_iter().collect(),
        scheduler_config: PoolConfiguration {
            algorithm: algorithm(&of_pool.scheduler_algorithm)
                .at("scheduler_configuration.scheduler_algorithm")?,
            memory_oversubscription_enabled: of_pool.memory_oversubscription_enabled,
        },
        deleting: false,
    };
    pool.check()?;
    Ok(pool)
}

impl From<&NodePool> for v1::NodePool {
    fn from(pool: &NodePool) -> Self {
        let of_pool = pool.scheduler_config;
        let algorithm = of_pool.algorithm.map(|algorithm| algorithm.as_str());
        let scheduler_configuration =
            (!of_pool.is_empty()).then(|| v1::NodePoolSchedulerConfiguration {
                scheduler_algorithm: algorithm.unwrap_or_default().to_owned(),
                memory_oversubscription_enabled: of_pool.memory_oversubscription_enabled,
            });
        Self {
            name: pool.name.clone(),
            description: pool.description.clone(),
            meta: pool.meta.clone().into_iter().collect(),
            scheduler_configuration,
            create_index: 0,
            modify_index: 0,
        }
    }
}

impl From<&Indexed<NodePool>> for v1::NodePool {
    fn from(pool: &Indexed<NodePool>) -> Self {
        Self {
            create_index: pool.create_index,
            modify_index: pool.modify_index,
            ..Self::from(&pool.value)
        }
    }
}
