//! Context shared by the parts of one node's agent. Several nodes may live in one process, each with
//! its own context.

use std::sync::Arc;

use local_state::Identity;
use service_watch::Services;

use crate::metrics::Metrics;

pub(crate) struct Context {
    pub(crate) identity: Identity,
    /// The context that the agent shares with the runners of its allocations.
    pub(crate) tasks: Arc<task_runner::Context>,
    pub(crate) metrics: Metrics,
    /// The services that the node looks up.
    pub(crate) services: Arc<Services>,
}

#[cfg(test)]
impl Context {
    /// The context of a node without directories.
    pub(crate) fn for_test(
        state: local_state::LocalState,
        driver: impl task_drivers::Driver + 'static,
    ) -> Self {
        let ids = service_kit::IdSource::seeded(1);
        let identity = Identity::new(&ids, None);
        let driver: Arc<dyn task_drivers::Driver> = Arc::new(driver);
        let drivers = task_runner::Drivers::from([(driver.name(), driver)]);
        let tasks = task_runner::Context::new(identity.node_id, drivers, state, ids);
        Self {
            identity,
            tasks: Arc::new(tasks),
            metrics: Metrics::default(),
            services: Arc::default(),
        }
    }
}
