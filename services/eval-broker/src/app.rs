//! The wiring of the eval-broker.

use proto::internal::v1::eval_broker_server::{self, EvalBrokerServer};
use service_host::{Host, Rpcs, Running, Service};
use service_kit::{Clock, ConfigError, IdSource};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::config::Config;
use crate::handle::Handle;
use crate::metrics::Metrics;
use crate::performer::Performer;
use crate::run::Term;
use crate::writes::Writes;
use crate::{SERVICE, grpc, run};

pub type App = service_host::App<EvalBroker>;

#[derive(Debug)]
pub struct EvalBroker;

impl Service for EvalBroker {
    const NAME: &'static str = SERVICE;
    type Config = Config;

    fn check(config: &Config) -> Result<(), ConfigError> {
        config.check()
    }

    fn run(config: Config, host: Host, drain: CancellationToken) -> Running {
        let metrics = host.metrics.register(Metrics::register);
        let replica = host.replica.clone();
        let handle = Handle::default();
        let routes = Routes::new(EvalBrokerServer::new(grpc::Service {
            handle: handle.clone(),
            replica: replica.clone(),
        }));
        let broker = config.broker();
        let (client, ids) = (host.client().clone(), IdSource::from_os());
        let drained = drain.clone();
        let lead = move |leadership: store::Leadership| {
            let writes = Writes::new(
                leadership.writer(&client),
                replica.clone(),
                ids.clone(),
                broker.delivery_limit,
                metrics.clone(),
            );
            let performer = Performer::new(
                writes,
                replica.clone(),
                metrics.clone(),
                broker.nack_timeout,
            );
            let term = Term {
                performer,
                leadership,
                config: broker.clone(),
                seed: ids.next_u64(),
                replica: replica.clone(),
                clock: Clock::real(),
                metrics: metrics.clone(),
                commands: handle.open(),
            };
            run::lead(term, drained.clone())
        };
        let leading = host.elected(config.election_ttl, drain.clone(), lead);
        let rpcs = Rpcs {
            routes,
            names: vec![eval_broker_server::SERVICE_NAME],
        };
        host.run(rpcs, leading, config.shutdown_grace_period, drain)
    }
}
