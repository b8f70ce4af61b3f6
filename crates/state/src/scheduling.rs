//! The effective scheduler configuration: the stored one or the defaults, with the overrides of
//! node pools.

use std::sync::Arc;

use model::{Indexed, PoolConfiguration, SchedulerConfiguration};

/// **Invariant**: `effective` is `stored` or the default, with the overrides of stored pools alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scheduling {
    stored: Option<Arc<Indexed<SchedulerConfiguration>>>,
    /// Cached, because every evaluation reads it.
    effective: Arc<SchedulerConfiguration>,
}

impl Scheduling {
    pub(crate) fn stored(&self) -> Option<&Arc<Indexed<SchedulerConfiguration>>> {
        self.stored.as_ref()
    }

    pub(crate) fn effective(&self) -> &SchedulerConfiguration {
        &self.effective
    }

    pub(crate) fn put(&mut self, config: Arc<Indexed<SchedulerConfiguration>>) {
        self.replace(config.value.clone());
        self.stored = Some(config);
    }

    pub(crate) fn delete(&mut self) {
        self.stored = None;
        self.replace(SchedulerConfiguration::default());
    }

    /// Sets the overrides of a node pool, which may be empty.
    pub(crate) fn put_pool(&mut self, name: &str, of_pool: PoolConfiguration) {
        let pools = &mut Arc::make_mut(&mut self.effective).pools;
        if of_pool.is_empty() {
            pools.remove(name);
        } else {
            pools.insert(name.to_owned(), of_pool);
        }
    }

    fn replace(&mut self, config: SchedulerConfiguration) {
        let effective = Arc::make_mut(&mut self.effective);
        let pools = std::mem::take(&mut effective.pools);
        *effective = SchedulerConfiguration { pools, ..config };
    }
}
