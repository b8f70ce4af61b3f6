//! The settings of the scheduler-worker.

service_host::config! {
    pub struct Config {
        /// Evaluations that are scheduled concurrently. Scheduling occupies a core, so the default is
        /// the number of cores, and at least 2. Plans of a few allocations wait for the plan-applier
        /// beside these, 64 for each.
        pub workers: u32 = default_workers(),
        /// Job types that it processes; empty: all.
        #[serde(with = "service_kit::config::list")]
        pub job_types: Vec<String> = Vec::new(),
    }
}

fn default_workers() -> u32 {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    u32::try_from(cores).unwrap_or(u32::MAX).max(2)
}
