//! The wiring of the plan-applier.

use service_host::{Host, Rpcs, Running, Service};
use service_kit::{Clock, ConfigError};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::SERVICE;
use crate::commit::Committer;
use crate::config::Config;
use crate::grpc::Grpc;
use crate::metrics::Metrics;
use crate::run;
use crate::run::Context;
use crate::submission_queue::SubmissionQueue;

pub type App = service_host::App<PlanApplier>;

#[derive(Debug)]
pub struct PlanApplier;

impl Service for PlanApplier {
    const NAME: &'static str = SERVICE;
    type Config = Config;

    fn check(config: &Config) -> Result<(), ConfigError> {
        service_host::check_election_ttl(SERVICE, config.election_ttl)
    }

    fn run(config: Config, host: Host, drain: CancellationToken) -> Running {
        let metrics = host.metrics.register(Metrics::register);
        let replica = host.replica.clone();
        let submissions = SubmissionQueue::default();
        let grpc = Grpc {
            submissions: submissions.clone(),
            replica: replica.clone(),
        };
        let rpcs = Rpcs {
            routes: Routes::new(grpc.into_server()),
            names: vec![proto::internal::v1::plan_applier_server::SERVICE_NAME],
        };
        let (election_ttl, grace) = (config.election_ttl, config.shutdown_grace_period);
        let client = host.client().clone();
        let drained = drain.clone();
        let lead = move |leadership: store::Leadership| {
            let committer = Committer {
                writer: leadership.writer(&client),
                replica: replica.clone(),
                metrics: metrics.clone(),
                drain: drained.clone(),
            };
            let context = Context {
                replica: replica.clone(),
                committer,
                clock: Clock::real(),
                verify_threads: config.verify_threads,
                bad_nodes: config.tracker(),
                metrics: metrics.clone(),
            };
            let revision = leadership.fence().create_revision;
            run::lead(context, submissions.open(), revision, drained.clone())
        };
        let leading = host.elected(election_ttl, drain.clone(), lead);
        host.run(rpcs, leading, grace, drain)
    }
}
