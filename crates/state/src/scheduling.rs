//! The scheduler's configuration as it holds: what is stored, or the defaults, with what node pools
//! have of their own.

use std::sync::Arc;

use model::{Indexed, PoolConfiguration, SchedulerConfiguration};

/// **Invariant**: `in_force` is `stored`, or the default, with the pools' parts and no others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scheduling {
    stored: Option<Arc<Indexed<SchedulerConfiguration>>>,
    /// Kept ready, because every evaluation asks for it.
    in_force: Arc<SchedulerConfiguration>,
}

impl Scheduling {
    pub(crate) fn stored(&self) -> Option<&Arc<Indexed<SchedulerConfiguration>>> {
        self.stored.as_ref()
    }

    pub(crate) fn in_force(&self) -> &SchedulerConfiguration {
        &self.in_force
    }

    pub(crate) fn put(&mut self, config: Arc<Indexed<SchedulerConfiguration>>) {
        self.replace(config.value.clone());
        self.stored = Some(config);
    }

    pub(crate) fn delete(&mut self) {
        self.stored = None;
        self.replace(SchedulerConfiguration::default());
    }

    /// Takes in what a node pool has of its own: nothing, perhaps.
    pub(crate) fn put_pool(&mut self, name: &str, of_pool: PoolConfiguration) {
        let pools = &mut Arc::make_mut(&mut self.in_force).pools;
        if of_pool.is_empty() {
            pools.remove(name);
        } else {
            pools.insert(name.to_owned(), of_pool);
        }
    }

    fn replace(&mut self, config: SchedulerConfiguration) {
        let in_force = Arc::make_mut(&mut self.in_force);
        let pools = std::mem::take(&mut in_force.pools);
        *in_force = SchedulerConfiguration { pools, ..config };
    }
}
