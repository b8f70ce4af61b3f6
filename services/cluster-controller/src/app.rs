//! The wiring of the cluster-controller.

use proto::internal::v1::liveness_server::{self, LivenessServer};
use proto::internal::v1::maintenance_server::{self, MaintenanceServer};
use service_host::{Host, Rpcs, Running, Service};
use service_kit::{Clock, ConfigError, IdSource, SteadyClock};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::config::Config;
use crate::garbage::{Requests, WAITING_REQUESTS};
use crate::metrics::Metrics;
use crate::metrics::jobs::Jobs;
use crate::report::Reports;
use crate::term::Term;
use crate::{SERVICE, deletions, drain as draining, etcd, garbage, grpc, periodic, run};

pub type App = service_host::App<ClusterController>;

#[derive(Debug)]
pub struct ClusterController;

impl Service for ClusterController {
    const NAME: &'static str = SERVICE;
    type Config = Config;

    fn check(config: &Config) -> Result<(), ConfigError> {
        config.maintenance()?;
        service_host::check_election_ttl(SERVICE, config.election_ttl)
    }

    fn run(config: Config, host: Host, drain: CancellationToken) -> Running {
        let maintenance = config.maintenance();
        let metrics = host.metrics.register(Metrics::register);
        let replica = host.replica.clone();
        let reports = Reports::default();
        let requests = Requests::default();
        let rpcs = grpc::Service {
            reports: reports.clone(),
            requests: requests.clone(),
            replica: replica.clone(),
            metrics: metrics.clone(),
        };
        let routes = Routes::new(LivenessServer::new(rpcs.clone()))
            .add_service(MaintenanceServer::new(rpcs));
        let schedule = garbage::Schedule {
            interval: config.gc_interval,
            thresholds: config.thresholds(),
        };
        let liveness = controller::Config {
            heartbeat_ttl: config.heartbeat_ttl,
            heartbeat_grace: config.heartbeat_grace,
            takeover_grace: config.heartbeat_ttl,
            ..controller::Config::default()
        };
        let deletion_timeout = config.deletion_timeout;
        let (client, ids) = (host.client().clone(), IdSource::from_os());
        let leads = etcd::Leads::default();
        let jobs = Jobs::new(replica.clone(), leads.clone(), config.job_metrics_max);
        host.metrics
            .register(|registry| registry.register_collector(Box::new(jobs)));
        let etcd_maintenance = etcd::Maintenance {
            client: client.clone(),
            replica: replica.clone(),
            metrics: metrics.clone(),
            leads: leads.clone(),
            ids: ids.clone(),
        };
        let drained = drain.clone();
        let lead = move |leadership: store::Leadership| {
            let term = Term {
                writer: leadership.writer(&client),
                replica: replica.clone(),
                clock: SteadyClock::start(Clock::real()),
                ids: ids.clone(),
                metrics: metrics.clone(),
                config: liveness.clone(),
                deposed: CancellationToken::new(),
            };
            let collecting = garbage::collect(
                term.clone(),
                schedule.clone(),
                requests.open(WAITING_REQUESTS),
                drained.clone(),
            );
            let draining_nodes = draining::drain_nodes(term.clone(), drained.clone());
            let timing_out =
                deletions::remove_expired_marks(term.clone(), deletion_timeout, drained.clone());
            let launching = periodic::launch(term.clone(), Clock::real(), drained.clone());
            let watching = run::lead(
                term,
                leadership,
                replica.clone(),
                reports.open(),
                drained.clone(),
            );
            let leading = leads.begin();
            async move {
                let _leading = leading;
                tokio::join!(watching, draining_nodes, collecting, timing_out, launching);
            }
        };
        let leading = host.elected(config.election_ttl, drain.clone(), lead);
        let rpcs = Rpcs {
            routes,
            names: vec![
                liveness_server::SERVICE_NAME,
                maintenance_server::SERVICE_NAME,
            ],
        };
        let grace = config.shutdown_grace_period;
        let drained = drain.clone();
        let work = async move {
            let maintaining = async move {
                // `check` has refused wrong settings.
                if let Ok(settings) = maintenance {
                    etcd_maintenance.run(settings, drained).await;
                }
            };
            tokio::join!(leading, maintaining);
        };
        host.run(rpcs, Box::pin(work), grace, drain)
    }
}
