//! Wiring of the agent: construction, run, shutdown.

mod consul;
mod drivers;
mod hangup;
mod machine;
mod names;
mod parts;
mod serving;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fingerprint::Offers;
use futures::future::{BoxFuture, OptionFuture};
use gateway_calls::Gateways;
use gateway_sources::GatewaySources;
use identity::Role;
use lifecycle::Limits;
use local_state::{CertificateFiles, Memory, Opened, Restored, Storage};
use model::Node;
use node_introduction::{Joining, Renewal};
use service_kit::server::bind_all;
use service_kit::{IdSource, TracedChannel, Transport};
use task_drivers::NodeFacts;
use task_runner::levels::{Levels, Source, read_usage};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use self::machine::Machine;
use self::parts::{
    Parts, built_in_drivers, certified_id, make_drivers, make_networks, node_meta, open_vault,
    open_volumes, probes,
};
use self::serving::{Listeners, serve_all};
use crate::allocations::agent::Agent;
use crate::allocations::gc;
use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::grpc::operations::Operations;
use crate::metrics::Metrics;
use crate::session::shared::Session;
use crate::{SERVICE, session};

/// Timeout of the last reports when the agent ends: a gateway answers within milliseconds, and the
/// next run of the agent sends unacknowledged reports.
const LAST_REPORTS_LIMIT: Duration = Duration::from_secs(2);
/// Requests that wait for a look at the machine, which takes up to seconds. Each gets one of its own.
const REFRESHES: usize = 4;
/// Connections that the node has opened and its server has not taken yet, which it does at once.
const OPENED: usize = 8;
/// The address of a node without a server: the discard port (RFC 863).
const NO_SERVER: &str = "http://127.0.0.1:9";

/// One node's agent, built and bound, not yet running. Several may live in one process.
pub struct App {
    config: Config,
    context: Arc<Context>,
    gateways: Arc<Gateways>,
    restored: Restored,
    registry: service_kit::Metrics,
    machine: Machine,
    node: Node,
    /// `None` on a simulated node.
    listeners: Option<Listeners>,
    dns: Option<service_dns::Server>,
    /// The certificate that the node renews; `None`: operators do.
    own_certificate: Option<CertificateFiles>,
    /// SIGHUP makes the agent look at its machine.
    refreshes_on_hangup: bool,
}

/// Parts shared by the simulated nodes of a process: see [`App::build_simulated`].
#[derive(Clone)]
pub struct SharedParts {
    /// To the gateway of all nodes.
    pub channel: TracedChannel,
    /// The metrics of all nodes together.
    pub metrics: Metrics,
    pub ids: IdSource,
}

impl App {
    /// Binds the ports, locks the data directory and reads the state of an earlier run; gets the node's
    /// certificate if it joins with a token, for which it waits for a gateway.
    ///
    /// # Errors
    /// The token is refused, a port or the data directory is in use, the data directory cannot be used,
    /// or a setting is invalid.
    pub fn build(config: Config) -> BoxFuture<'static, Result<Self, Error>> {
        // Boxed here and below, so that the node is compiled in this crate and not in its users'.
        Box::pin(Self::build_in_data_dir(config))
    }

    async fn build_in_data_dir(config: Config) -> Result<Self, Error> {
        let storage = match config.data_dir.clone() {
            Some(data_dir) => Storage::Directory(data_dir),
            None => {
                warn!("no data_dir: nothing survives a restart, and only mock_driver is available");
                Storage::None
            }
        };
        Box::pin(Self::build_with(config, storage)).await
    }

    /// As [`App::build`], for a node with its state in `memory` and `mock_driver` alone. For
    /// simulations that restart the agent.
    ///
    /// # Errors
    /// Those of [`App::build`].
    pub fn build_in(config: Config, memory: &Memory) -> BoxFuture<'static, Result<Self, Error>> {
        Box::pin(Self::build_with(config, Storage::Memory(memory.clone())))
    }

    async fn build_with(mut config: Config, storage: Storage) -> Result<Self, Error> {
        if config.gateways.is_empty() {
            return Err(Error::NoGateways);
        }
        let offers = Offers::resolve(&config.fingerprint())?;
        config.check()?;
        let ids = IdSource::from_os();
        let registry = service_kit::Metrics::new(SERVICE);
        let metrics = registry.register(Metrics::register);
        // Everything that can fail on this machine comes before the token is used.
        let vault = open_vault(&config)?;
        let consul = consul::open(&config)?;
        let dns = names::bind(&config.dns).await?;
        let (grpc, metrics_http) = bind_all(&config.listen).await?;
        let bound = grpc.local_addr().map_err(Error::Address)?;
        config.listen.advertised(bound)?;
        let locked = storage.lock(metrics.local_state.clone()).await?;
        let artifacts =
            drivers::artifacts(&config.artifact, locked.state_dir(), &metrics.artifacts)?;
        let joining = Joining {
            introduction: &config.introduction,
            gateways: &config.gateways,
            data_dir: config.data_dir.as_deref(),
            node_pool: &config.node_pool,
            node_name: &config.fingerprint().node_name(),
        };
        let own_certificate = node_introduction::prepare(joining, &mut config.tls, &ids).await?;
        let transport = Transport::open(&config.tls, &config.listen, Role::Node)?;
        let address = transport.advertised(&config.listen, bound)?;
        let listeners = Listeners {
            grpc,
            metrics: metrics_http,
            transport: transport.clone(),
        };
        let certified = certified_id(&config, &transport)?;
        let opened = locked.identify(&ids, certified).await?;
        let gateways = Gateways::new(config.gateways.clone(), ids.clone(), transport.clone());
        let (drivers, driver_plugins) = make_drivers(&config, &opened).await;
        let volumes = open_volumes(&opened)?;
        let parts = Parts {
            metrics,
            registry,
            ids,
            gateways,
            artifacts,
            machine: Machine {
                address,
                drivers,
                driver_plugins,
                offers,
                networks: make_networks(&config, &opened),
                volumes,
                offered: Mutex::default(),
                meta: node_meta(&config, &opened),
                probes: probes(vault.as_ref(), consul.as_ref()),
            },
            vault,
            consul,
            listeners: Some(listeners),
            dns,
            own_certificate,
        };
        parts.machine.refresh().await;
        let app = Self::assemble(config, opened, parts);
        // Every gateway would refuse it.
        if let Some(dimension) = app.node.reserved.exceeds(app.node.resources) {
            return Err(Error::Setting {
                field: "reserved".to_owned(),
                problem: format!("has more {dimension} than the machine: want less"),
            });
        }
        Ok(app)
    }

    /// Builds a simulated node: no storage, no server, `mock_driver` alone, and parts shared with
    /// others. For simulations of many nodes in one process.
    pub fn build_simulated(config: Config, shared: SharedParts) -> Self {
        let SharedParts {
            channel,
            metrics,
            ids,
        } = shared;
        let opened = Opened::without_storage(&ids, None);
        let parts = Parts {
            metrics,
            registry: service_kit::Metrics::new(SERVICE),
            gateways: Gateways::shared(channel, ids.clone()),
            ids,
            artifacts: None,
            machine: Machine {
                address: NO_SERVER.to_owned(),
                drivers: built_in_drivers(&config, &opened),
                driver_plugins: Default::default(),
                offers: Offers::default(),
                networks: None,
                volumes: None,
                offered: Mutex::default(),
                meta: node_meta(&config, &opened),
                probes: Vec::new(),
            },
            vault: None,
            consul: None,
            listeners: None,
            dns: None,
            own_certificate: None,
        };
        Self::assemble(config, opened, parts)
    }

    fn assemble(config: Config, opened: Opened, parts: Parts) -> Self {
        let machine = parts.machine;
        let jobs = &parts.metrics.tasks.jobs;
        jobs.set_alloc_ids(config.publish_allocation_metrics);
        let alloc_dir = opened.alloc_dir.as_deref();
        let node = machine.node(&config.fingerprint(), &opened.identity, alloc_dir, None);
        let gateways = Arc::new(parts.gateways);
        let services = Arc::<service_watch::Services>::default();
        let sources = Arc::new(GatewaySources::new(
            Arc::clone(&gateways),
            &opened.identity,
            Arc::clone(&services),
        ));
        let mut tasks = task_runner::Context {
            tokens: Arc::<GatewaySources>::clone(&sources),
            data: Arc::<GatewaySources>::clone(&sources),
            volumes: sources,
            storage: machine.volumes.clone(),
            vault: parts.vault,
            consul_services: parts
                .consul
                .as_ref()
                .map(|node| consul::services(node, &config)),
            consul: parts.consul,
            facts: NodeFacts::new(&node, &config.region),
            limits: Limits {
                max_kill_timeout: config.max_kill_timeout,
            },
            alloc_dir: opened.alloc_dir,
            networks: machine.networks.clone(),
            artifacts: parts.artifacts,
            metrics: parts.metrics.tasks.clone(),
            stop_tasks_on_exit: config.stop_tasks_on_exit,
            shutdown_grace_period: config.shutdown_grace_period,
            ..task_runner::Context::new(
                opened.identity.node_id,
                machine.drivers.clone(),
                opened.state,
                parts.ids,
            )
        };
        if config.disable_remote_exec {
            tasks.exec_slots = None;
        }
        let context = Context {
            identity: opened.identity,
            tasks: Arc::new(tasks),
            metrics: parts.metrics,
            services,
        };
        Self {
            config,
            context: Arc::new(context),
            gateways,
            restored: opened.restored,
            registry: parts.registry,
            machine,
            node,
            listeners: parts.listeners,
            dns: parts.dns,
            own_certificate: parts.own_certificate,
            refreshes_on_hangup: false,
        }
    }

    /// As [`App::build`], for an agent that is a process of its own: SIGHUP makes it look at its machine again,
    /// and does not end it.
    ///
    /// # Errors
    /// Those of [`App::build`].
    pub fn build_service(config: Config) -> BoxFuture<'static, Result<Self, Error>> {
        Box::pin(async {
            let mut app = Self::build(config).await?;
            app.refreshes_on_hangup = true;
            Ok(app)
        })
    }

    /// Returns the address for gateways.
    pub fn address(&self) -> &str {
        &self.machine.address
    }

    pub fn node_id(&self) -> model::NodeId {
        self.context.identity.node_id
    }

    /// Returns the address of its metrics; `None` for a simulated node.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.listeners.as_ref()?.metrics.local_addr().ok()
    }

    /// Returns the address of its names of services; `None`: it serves none.
    pub fn dns_address(&self) -> Option<SocketAddr> {
        self.dns.as_ref()?.local_addr().ok()
    }

    /// Runs until drained. Its tasks go on, unless the configuration says otherwise.
    ///
    /// # Errors
    /// A server failed, or the local state cannot be written.
    pub fn run(self, drain: CancellationToken) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(self.run_until_drained(drain))
    }

    async fn run_until_drained(self, drain: CancellationToken) -> Result<(), Error> {
        // Other nodes of this process do not end with this one.
        let drain = drain.child_token();
        // The session outlives the runners, to send their last reports.
        let ended = CancellationToken::new();
        let agent = Arc::new(Agent::new(Arc::clone(&self.context), drain.clone()));
        agent.restore(self.restored, &task_drivers::boot_id()).await;
        if self.config.telemetry.nomad_metric_names {
            self.registry.serve_nomad_names(nomad_labels(&self.node));
        }
        let (node, node_changes) = watch::channel(self.node);
        // A simulated node has no metrics of its own.
        if self.listeners.is_some() {
            let levels = levels(&self.context, &agent, node.subscribe(), &self.config);
            self.registry
                .register(|registry| registry.register_collector(Box::new(levels)));
        }
        let session = Session::new(
            Arc::clone(&self.context),
            Arc::clone(&agent),
            Arc::clone(&self.gateways),
            node_changes,
        );
        let (refreshes, asked) = mpsc::channel(REFRESHES);
        let operations = Operations::new(
            Arc::clone(&self.context),
            Arc::clone(&agent),
            drain.clone(),
            node.subscribe(),
            Arc::clone(&self.machine.meta),
            refreshes.clone(),
        );
        self.registry.set_ready(true);
        let registry = self.registry.clone();
        let watching = watch_state(&self.context, &registry, &drain, &ended);
        let (server, opened) = mpsc::channel(OPENED);
        // A simulated node has no server.
        let dialing = self.listeners.as_ref().map(|listeners| {
            let peer = listeners.transport.peer_of(Role::Gateway);
            session::dial_out(&session, (server, peer), drain.clone())
        });
        let serving = serve_all(
            self.listeners,
            opened,
            operations,
            self.registry,
            self.config.shutdown_grace_period,
            (drain.clone(), ended.clone()),
        );
        let fingerprinting =
            self.machine
                .watch(&self.config, &self.context, node, asked, ended.clone());
        let hearing = async {
            if self.refreshes_on_hangup {
                hangup::refresh(refreshes, ended.clone()).await;
            }
        };
        let collecting = gc::run(&self.context, &agent, self.config.gc, ended.clone());
        let renewing = Renewal {
            gateways: &self.gateways,
            files: self.own_certificate,
            metrics: &self.context.metrics.introduction,
            clock: service_kit::Clock::real(),
            rng: self.context.tasks.ids.rng(),
        };
        let measuring = async {
            if self.config.publish_allocation_metrics {
                read_usage(&self.context.tasks.drivers, ended.clone()).await;
            }
        };
        let naming = names::serve(
            self.dns,
            &self.config,
            &self.context,
            registry.clone(),
            &ended,
        );
        let registering = consul::keep_registered(&self.context.tasks, &ended);
        let ending = async {
            drain.cancelled().await;
            agent.ended().await;
            // The next run of the agent sends the rest.
            let _ = timeout(LAST_REPORTS_LIMIT, self.context.tasks.reporter.drained()).await;
            self.context.tasks.state.close().await;
            self.machine.driver_plugins.close().await;
            ended.cancel();
        };
        let (served, watched, (), (), (), (), (), (), (), (), (), _) = tokio::join!(
            serving,
            watching,
            session::run(&session, ended.clone()),
            fingerprinting,
            collecting,
            renewing.run(ended.clone()),
            measuring,
            naming,
            hearing,
            registering,
            ending,
            OptionFuture::from(dialing)
        );
        served.and(watched)
    }
}

/// Returns the metrics that are read at each scrape.
fn levels(
    context: &Context,
    agent: &Arc<Agent>,
    node: watch::Receiver<Node>,
    config: &Config,
) -> Levels {
    Levels::new(
        Arc::clone(agent) as Arc<dyn Source>,
        context.tasks.drivers.clone(),
        node,
        context.tasks.alloc_dir.clone(),
        config.publish_allocation_metrics,
        Arc::clone(&context.services),
    )
}

/// Shows in the readiness whether the local state is written, until the agent has ended. Ends the agent if it
/// cannot be written any more.
async fn watch_state(
    context: &Context,
    registry: &service_kit::Metrics,
    drain: &CancellationToken,
    ended: &CancellationToken,
) -> Result<(), Error> {
    let state = &context.tasks.state;
    tokio::select! {
        () = ended.cancelled() => Ok(()),
        () = state.watch(|is_writing| registry.set_ready(is_writing)) => {
            registry.set_ready(false);
            if drain.is_cancelled() {
                return Ok(());
            }
            error!("ending, because the local state cannot be written; tasks go on");
            drain.cancel();
            Err(Error::LocalStateLost)
        }
    }
}

/// Returns the labels of a node's metrics under Nomad's names. Source: Nomad's public documentation.
fn nomad_labels(node: &Node) -> Vec<(&'static str, String)> {
    let class = match node.node_class.as_str() {
        "" => "none",
        class => class,
    };
    vec![
        ("node_id", node.id.to_string()),
        ("datacenter", node.datacenter.clone()),
        ("node_class", class.to_owned()),
        ("node_pool", node.node_pool.clone()),
    ]
}
