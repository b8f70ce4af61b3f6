//! The wiring of the deployment-watcher.

use service_host::{Host, Rpcs, Running, Service};
use service_kit::{Clock, ConfigError, IdSource};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::performer::Performer;
use crate::{SERVICE, run};

pub type App = service_host::App<DeploymentWatcher>;

#[derive(Debug)]
pub struct DeploymentWatcher;

impl Service for DeploymentWatcher {
    const NAME: &'static str = SERVICE;
    type Config = Config;

    fn check(config: &Config) -> Result<(), ConfigError> {
        service_host::check_election_ttl(SERVICE, config.election_ttl)
    }

    fn run(config: Config, host: Host, drain: CancellationToken) -> Running {
        let metrics = host.metrics.register(Metrics::register);
        let replica = host.replica.clone();
        let rollout = rollout::Config {
            health_window: config.health_window,
        };
        let (client, ids) = (host.client().clone(), IdSource::from_os());
        let drained = drain.clone();
        let lead = move |leadership: store::Leadership| {
            let performer = Performer {
                writer: leadership.writer(&client),
                replica: replica.clone(),
                clock: Clock::real(),
                ids: ids.clone(),
                metrics: metrics.clone(),
            };
            run::lead(performer, rollout.clone(), replica.clone(), drained.clone())
        };
        let leading = host.elected(config.election_ttl, drain.clone(), lead);
        let grace = config.shutdown_grace_period;
        host.run(Rpcs::default(), leading, grace, drain)
    }
}
