//! The settings of the plan-applier.

use std::time::Duration;

use applier::bad_nodes::{Settings, Tracker};

service_host::config! {
    elected
    pub struct Config {
        /// Threads that the nodes of a large plan are verified on. Verifying only computes, so the
        /// default is the number of cores; 1 leaves the cores to others.
        pub verify_threads: usize = default_verify_threads(),
        /// Makes a node with repeated rejections of its parts of plans ineligible. Off by default,
        /// because such a node does not become eligible again by itself.
        pub plan_rejection_tracker: bool = false,
        /// Number of rejections within `plan_rejection_node_window` that make a node ineligible.
        pub plan_rejection_node_threshold: u32 = Settings::default().threshold,
        /// Time for which a rejection counts.
        #[serde(with = "service_kit::config::duration")]
        pub plan_rejection_node_window: Duration = Settings::default().window,
    }
}

fn default_verify_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

impl Config {
    /// Returns the tracker of rejected nodes; `None` when it is off.
    pub(crate) fn tracker(&self) -> Option<Tracker> {
        let settings = Settings {
            threshold: self.plan_rejection_node_threshold,
            window: self.plan_rejection_node_window,
        };
        self.plan_rejection_tracker.then(|| Tracker::new(settings))
    }
}
