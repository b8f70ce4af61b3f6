//! The settings of the cluster-controller.

use std::time::Duration;

use controller::garbage::Thresholds;

service_host::config! {
    elected
    pub struct Config {
        /// The interval within which a node sends a heartbeat. Set the same value at every gateway:
        /// nodes send two heartbeats per value of their gateway. With a longer one there, nodes are
        /// marked down although they are alive once half of it exceeds this value and
        /// `heartbeat_grace`; with a shorter one, a dead node is detected no sooner.
        #[serde(with = "service_kit::config::duration")]
        pub heartbeat_ttl: Duration = model::node::DEFAULT_HEARTBEAT_TTL,
        /// How late a heartbeat may be before the node is marked down: it covers the failover of a
        /// gateway.
        #[serde(with = "service_kit::config::duration")]
        pub heartbeat_grace: Duration = Duration::from_secs(5),
        /// The interval of garbage collection.
        #[serde(with = "service_kit::config::duration")]
        pub gc_interval: Duration = Duration::from_secs(5 * 60),
        /// How long ended evaluations and allocations are kept after their last change.
        #[serde(with = "service_kit::config::duration")]
        pub eval_gc_threshold: Duration = Thresholds::default().eval,
        /// The same for batch and sysbatch jobs, while the job is kept.
        #[serde(with = "service_kit::config::duration")]
        pub batch_eval_gc_threshold: Duration = Thresholds::default().batch_eval,
        /// How long dead jobs are kept after their registration, if they were stopped or ran to
        /// completion.
        #[serde(with = "service_kit::config::duration")]
        pub job_gc_threshold: Duration = Thresholds::default().job,
        /// How long ended deployments are kept; the newest one of a job always is.
        #[serde(with = "service_kit::config::duration")]
        pub deployment_gc_threshold: Duration = Thresholds::default().deployment,
        /// How long nodes that are down are kept.
        #[serde(with = "service_kit::config::duration")]
        pub node_gc_threshold: Duration = Thresholds::default().node,
        /// How long the deletion of a namespace, a node pool or a volume may take. Then it is
        /// reverted, and the object can be used again. 1 min is far longer than the two transactions
        /// of a gateway take.
        #[serde(with = "service_kit::config::duration")]
        pub deletion_timeout: Duration = Duration::from_secs(60),
    }
}

impl Config {
    /// Returns the retention times of garbage collection.
    pub(crate) fn thresholds(&self) -> Thresholds {
        Thresholds {
            eval: self.eval_gc_threshold,
            batch_eval: self.batch_eval_gc_threshold,
            job: self.job_gc_threshold,
            deployment: self.deployment_gc_threshold,
            node: self.node_gc_threshold,
            is_forced: false,
        }
    }
}
