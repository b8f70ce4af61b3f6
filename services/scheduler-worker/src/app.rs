//! The wiring of the scheduler-worker.

use std::sync::Arc;

use identity::Role;
use service_host::{Host, Rpcs, Running, Service};
use service_kit::{Clock, ConfigError, IdSource};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::SERVICE;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::peers::Leader;
use crate::session::Sessions;
use crate::work::Worker;

pub type App = service_host::App<SchedulerWorker>;

#[derive(Debug)]
pub struct SchedulerWorker;

impl Service for SchedulerWorker {
    const NAME: &'static str = SERVICE;
    type Config = Config;

    fn check(config: &Config) -> Result<(), ConfigError> {
        if config.workers > 0 {
            return Ok(());
        }
        Err(ConfigError::Invalid {
            service: SERVICE.to_owned(),
            problem: "`workers` is 0: set it to 1 or more, or do not start this service".to_owned(),
        })
    }

    fn run(config: Config, host: Host, drain: CancellationToken) -> Running {
        let metrics = host.metrics.register(Metrics::register);
        let replica = host.replica.clone();
        let ids = IdSource::from_os();
        let transport = host.transport().clone();
        let worker = Worker {
            replica: replica.clone(),
            applier: Leader::of(
                "plan-applier",
                Role::Applier,
                transport.clone(),
                replica.clone(),
            ),
            clock: Clock::real(),
            ids: ids.clone(),
            metrics,
            scheduling: Semaphore::new(config.workers as usize),
        };
        let sessions = Sessions {
            worker: Arc::new(worker),
            broker: Leader::of("eval-broker", Role::Broker, transport, replica),
            name: host.address().to_owned(),
            job_types: config.job_types,
            workers: config.workers,
            ids,
        };
        let grace = config.shutdown_grace_period;
        let drained = drain.clone();
        let working = async move {
            let grace_is_over = async {
                drained.cancelled().await;
                tokio::time::sleep(grace).await;
            };
            // Evaluations that are cut off here are delivered again.
            tokio::select! {
                () = sessions.run(drained.clone()) => {}
                () = grace_is_over => {}
            }
        };
        host.run(Rpcs::default(), Box::pin(working), grace, drain)
    }
}
