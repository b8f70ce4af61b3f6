//! Context shared by the parts of one node's agent. Several nodes may live in one process, each with
//! its own context.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lifecycle::Limits;
use local_state::{Identity, LocalState};
use service_kit::IdSource;
use task_drivers::{Driver, NodeFacts};

use crate::clock::Clocks;
use crate::metrics::Metrics;
use crate::reports::reporter::Reporter;

pub(crate) struct Context {
    pub(crate) identity: Identity,
    pub(crate) drivers: BTreeMap<&'static str, Arc<dyn Driver>>,
    pub(crate) facts: NodeFacts,
    pub(crate) limits: Limits,
    /// The directory of the allocations' files; `None` on a node without storage.
    pub(crate) alloc_dir: Option<PathBuf>,
    pub(crate) state: LocalState,
    pub(crate) reporter: Reporter,
    pub(crate) clocks: Clocks,
    pub(crate) ids: IdSource,
    pub(crate) metrics: Metrics,
    /// Kill every task when the agent ends.
    pub(crate) stop_tasks_on_exit: bool,
    /// Timeout of the shutdown.
    pub(crate) shutdown_grace_period: Duration,
}

#[cfg(test)]
impl Context {
    /// The context of a node without directories.
    pub(crate) fn for_test(state: LocalState, driver: impl Driver + 'static) -> Self {
        let ids = IdSource::seeded(1);
        let drivers: BTreeMap<&'static str, Arc<dyn Driver>> =
            BTreeMap::from([(driver.name(), Arc::new(driver) as Arc<dyn Driver>)]);
        Self {
            identity: Identity::new(&ids, None),
            drivers,
            facts: NodeFacts::default(),
            limits: Limits::default(),
            alloc_dir: None,
            state,
            reporter: Reporter::new(),
            clocks: Clocks::new(service_kit::Clock::real()),
            ids,
            metrics: Metrics::default(),
            stop_tasks_on_exit: false,
            shutdown_grace_period: Duration::from_secs(1),
        }
    }
}
