//! The whole wiring: what is built, what runs, how it ends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lifecycle::Limits;
use model::Node;
use proto::internal::v1::node_files_server::NodeFilesServer;
use service_kit::server::{ServeOptions, bind, serve};
use service_kit::{Clock, IdSource, TracedChannel};
use task_drivers::{
    Driver, Fingerprint, MockDriver, NodeFacts, RawExec, RawExecSettings, SupervisorCommand,
};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tracing::{error, info, warn};

use crate::agent::Agent;
use crate::clock::Clocks;
use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::fingerprint::{self, Offers};
use crate::gateways::Gateways;
use crate::grpc::Files;
use crate::identity::Identity;
use crate::local_state::{LocalState, Memory, Restored};
use crate::metrics::Metrics;
use crate::reporter::Reporter;
use crate::session::Session;
use crate::{SERVICE, SUPERVISOR_SUBCOMMAND, gc};

/// How long the last reports may take when the agent ends: a gateway that answers takes
/// milliseconds, and the next run of the agent sends what was not taken.
const LAST_REPORTS: Duration = Duration::from_secs(2);
/// Where a node that serves nothing says it answers: the port that discards what it gets (RFC 863).
const NOWHERE: &str = "http://127.0.0.1:9";

/// One node's agent, built and bound, not yet running. Several may live in one process.
pub struct App {
    config: Config,
    context: Arc<Context>,
    gateways: Arc<Gateways>,
    restored: Restored,
    registry: service_kit::Metrics,
    fingerprints: BTreeMap<&'static str, Fingerprint>,
    offers: Offers,
    node: Node,
    address: String,
    /// `None` for a node that only pretends.
    listeners: Option<Listeners>,
}

struct Listeners {
    grpc: net::Listener,
    metrics: net::Listener,
}

/// What many nodes of one process share that only pretend: see [`App::build_light`].
#[derive(Clone)]
pub struct Light {
    /// To the gateway that all of them ask.
    pub channel: TracedChannel,
    /// Where all of them count.
    pub metrics: Metrics,
    pub ids: IdSource,
}

impl App {
    /// Binds the ports, takes the data directory and reads what an earlier run left in it.
    ///
    /// # Errors
    /// A port is taken, the data directory is in use or cannot be used, or the configuration makes
    /// no sense.
    pub async fn build(config: Config) -> Result<Self, Error> {
        Self::build_with(config, None).await
    }

    /// As [`App::build`], of a node that keeps everything in `memory` and runs `mock_driver` alone.
    /// For simulations that end the agent and start it again.
    ///
    /// # Errors
    /// Those of [`App::build`].
    pub async fn build_in(config: Config, memory: &Memory) -> Result<Self, Error> {
        Self::build_with(config, Some(memory)).await
    }

    async fn build_with(config: Config, memory: Option<&Memory>) -> Result<Self, Error> {
        if config.gateways.is_empty() {
            return Err(Error::NoGateways);
        }
        let offers = Offers::resolve(&config)?;
        config.check()?;
        crate::devices::check(&config.devices)?;
        fingerprint::check_cores(&config)?;
        let registry = service_kit::Metrics::new(SERVICE);
        let metrics = registry.register(Metrics::register);
        let ids = IdSource::from_os();
        let listeners = Listeners {
            grpc: bind(config.listen.grpc).await?,
            metrics: bind(config.listen.metrics).await?,
        };
        let bound = listeners.grpc.local_addr().map_err(Error::Address)?;
        let address = config.listen.advertised(bound)?;
        let kept = match (memory, config.data_dir.clone()) {
            (Some(memory), _) => Kept::open_in(memory, &ids),
            (None, Some(data_dir)) => Kept::open(&data_dir, &ids, metrics.clone()).await?,
            (None, None) => {
                warn!("no data_dir: nothing is kept, and only mock_driver runs");
                Kept::nothing(&ids)
            }
        };
        let gateways = Gateways::new(config.gateways.clone(), ids.clone());
        let parts = Parts {
            metrics,
            registry,
            ids,
            gateways,
            address,
            listeners: Some(listeners),
            offers,
        };
        let app = Self::assemble(config, kept, parts);
        // No gateway would take it, however often it is asked.
        if let Some(dimension) = app.node.reserved.exceeds(app.node.resources) {
            return Err(Error::Setting {
                field: "reserved".to_owned(),
                problem: format!("has more {dimension} than the machine: want less"),
            });
        }
        Ok(app)
    }

    /// Makes a node that only pretends: it keeps nothing, binds nothing, runs `mock_driver` alone,
    /// and shares what it can with its likes. For simulations of many nodes in one process.
    pub fn build_light(config: Config, light: Light) -> Self {
        let Light {
            channel,
            metrics,
            ids,
        } = light;
        let kept = Kept::nothing(&ids);
        let parts = Parts {
            metrics,
            registry: service_kit::Metrics::new(SERVICE),
            gateways: Gateways::shared(channel, ids.clone()),
            ids,
            address: NOWHERE.to_owned(),
            listeners: None,
            offers: Offers::default(),
        };
        Self::assemble(config, kept, parts)
    }

    fn assemble(config: Config, kept: Kept, parts: Parts) -> Self {
        let drivers = drivers(&config, kept.state_dir.as_deref());
        let fingerprints: BTreeMap<&'static str, Fingerprint> = drivers
            .iter()
            .map(|(name, driver)| (*name, driver.fingerprint()))
            .collect();
        let alloc_dir = kept.alloc_dir.as_deref();
        let node = fingerprint::node(
            &config,
            &kept.identity,
            alloc_dir,
            &parts.address,
            &fingerprints,
            &parts.offers,
        );
        let context = Context {
            identity: kept.identity,
            drivers,
            facts: NodeFacts::new(&node, &config.region),
            limits: Limits {
                max_kill_timeout: config.max_kill_timeout,
            },
            alloc_dir: kept.alloc_dir,
            state: kept.state,
            reporter: Reporter::new(),
            clocks: Clocks::new(Clock::real()),
            ids: parts.ids,
            metrics: parts.metrics,
            stop_tasks_on_exit: config.stop_tasks_on_exit,
            shutdown_grace_period: config.shutdown_grace_period,
        };
        Self {
            config,
            context: Arc::new(context),
            gateways: Arc::new(parts.gateways),
            restored: kept.restored,
            registry: parts.registry,
            fingerprints,
            offers: parts.offers,
            node,
            address: parts.address,
            listeners: parts.listeners,
        }
    }

    /// Returns the address that gateways reach it at.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn node_id(&self) -> model::NodeId {
        self.context.identity.node_id
    }

    /// Returns where its metrics are; `None` for a node that only pretends.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.listeners.as_ref()?.metrics.local_addr().ok()
    }

    /// Runs until drained. Tasks go on without it, unless the configuration says otherwise.
    ///
    /// # Errors
    /// A server failed, or nothing can be kept any more.
    pub async fn run(self, drain: CancellationToken) -> Result<(), Error> {
        // Its own end is not that of others in this process.
        let drain = drain.child_token();
        // The session outlives the runners: they have last words.
        let ended = CancellationToken::new();
        let agent = Arc::new(Agent::new(Arc::clone(&self.context), drain.clone()));
        agent.restore(self.restored, &boot_id()).await;
        let (node, node_changes) = watch::channel(self.node);
        let session = Session::new(
            Arc::clone(&self.context),
            Arc::clone(&agent),
            self.gateways,
            node_changes,
        );
        let files = Files {
            context: Arc::clone(&self.context),
            agent: Arc::clone(&agent),
            drain: drain.clone(),
        };
        self.registry.set_ready(true);
        let registry = self.registry.clone();
        let watching = async {
            tokio::select! {
                () = ended.cancelled() => Ok(()),
                () = self.context.state.watch(|is_writing| registry.set_ready(is_writing)) => {
                    registry.set_ready(false);
                    if drain.is_cancelled() {
                        return Ok(());
                    }
                    error!("ending, because nothing of what happens can be kept; tasks go on");
                    drain.cancel();
                    Err(Error::LocalStateLost)
                }
            }
        };
        let serving = serve_all(
            self.listeners,
            files,
            self.registry,
            self.config.shutdown_grace_period,
            (drain.clone(), ended.clone()),
        );
        let looking = look_again(
            &self.config,
            &self.context,
            &self.address,
            (&self.fingerprints, &self.offers),
            node,
            ended.clone(),
        );
        let collecting = gc::run(&self.context, &agent, self.config.gc, ended.clone());
        let ending = async {
            drain.cancelled().await;
            agent.ended().await;
            // What cannot be told now is told by the next run.
            let _ = timeout(LAST_REPORTS, self.context.reporter.drained()).await;
            self.context.state.close().await;
            ended.cancel();
        };
        let (served, watched, (), (), (), ()) = tokio::join!(
            serving,
            watching,
            session.run(ended.clone()),
            looking,
            collecting,
            ending
        );
        served.and(watched)
    }
}

/// What [`App::assemble`] puts together.
struct Parts {
    metrics: Metrics,
    registry: service_kit::Metrics,
    ids: IdSource,
    gateways: Gateways,
    address: String,
    listeners: Option<Listeners>,
    offers: Offers,
}

/// What stands in the data directory.
struct Kept {
    identity: Identity,
    state: LocalState,
    restored: Restored,
    alloc_dir: Option<PathBuf>,
    /// The agent's own directory.
    state_dir: Option<PathBuf>,
}

impl Kept {
    fn nothing(ids: &IdSource) -> Self {
        Self {
            identity: Identity::new(ids),
            state: LocalState::none(),
            restored: Restored::default(),
            alloc_dir: None,
            state_dir: None,
        }
    }

    fn open_in(memory: &Memory, ids: &IdSource) -> Self {
        let (state, restored) = LocalState::open_in(memory);
        Self {
            identity: memory.identity(ids),
            state,
            restored,
            alloc_dir: None,
            state_dir: None,
        }
    }

    async fn open(data_dir: &Path, ids: &IdSource, metrics: Metrics) -> Result<Self, Error> {
        let (data_dir, ids) = (data_dir.to_owned(), ids.clone());
        // It waits for the disk, and for another agent that is just ending.
        offload::spawn(move || Self::open_now(&data_dir, &ids, metrics))
            .await
            .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    fn open_now(data_dir: &Path, ids: &IdSource, metrics: Metrics) -> Result<Self, Error> {
        use std::os::unix::fs::DirBuilderExt;
        let path_error = |path: &Path, what| {
            let path = path.to_owned();
            move |source| Error::Path { path, what, source }
        };
        let make = |path: &Path, mode| {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(mode)
                .create(path)
                .map_err(path_error(path, "cannot make the directory"))
        };
        make(data_dir, 0o755)?;
        // Tasks are told absolute paths.
        let data_dir = data_dir
            .canonicalize()
            .map_err(path_error(data_dir, "cannot find the data directory"))?;
        let (state_dir, alloc_dir) = (data_dir.join("client"), data_dir.join("alloc"));
        make(&state_dir, 0o700)?;
        // Others may pass through to an allocation of theirs, and not look around.
        make(&alloc_dir, 0o711)?;
        // First: it tells whether another agent is here.
        let (state, restored) = LocalState::open(&state_dir, metrics)?;
        let identity = Identity::load(&state_dir, ids)?;
        let (alloc_dir, state_dir) = (Some(alloc_dir), Some(state_dir));
        Ok(Self {
            identity,
            state,
            restored,
            alloc_dir,
            state_dir,
        })
    }
}

fn drivers(config: &Config, state_dir: Option<&Path>) -> BTreeMap<&'static str, Arc<dyn Driver>> {
    let mut drivers: BTreeMap<&'static str, Arc<dyn Driver>> = BTreeMap::new();
    if config.drivers.mock_driver || state_dir.is_none() {
        let mock = MockDriver::default();
        drivers.insert(mock.name(), Arc::new(mock));
    }
    if let Some(state_dir) = state_dir {
        let supervisor = match config.drivers.supervisor.as_slice() {
            [] => SupervisorCommand::own_program(SUPERVISOR_SUBCOMMAND),
            [program, args @ ..] => SupervisorCommand {
                program: program.into(),
                args: args.iter().map(Into::into).collect(),
            },
        };
        let mut settings = RawExecSettings::new(supervisor, state_dir.join("tasks"));
        settings.enabled = config.drivers.raw_exec;
        let parent = Some(config.drivers.cgroup_parent.clone());
        settings.cgroup_parent = parent.filter(|parent| !parent.is_empty());
        let raw_exec = RawExec::new(settings);
        drivers.insert(raw_exec.name(), Arc::new(raw_exec));
    }
    drivers
}

fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Serves tasks' output until drained and metrics until the end.
async fn serve_all(
    listeners: Option<Listeners>,
    files: Files,
    registry: service_kit::Metrics,
    shutdown_grace_period: Duration,
    (drain, ended): (CancellationToken, CancellationToken),
) -> Result<(), Error> {
    let Some(listeners) = listeners else {
        return Ok(());
    };
    let options = ServeOptions {
        service: SERVICE,
        rpc_services: &[proto::internal::v1::node_files_server::SERVICE_NAME],
        descriptors: proto::DESCRIPTORS,
        metrics: Some(registry.clone()),
        shutdown_grace_period,
    };
    let routes = Routes::new(NodeFilesServer::new(files));
    let serving = serve(listeners.grpc, routes, options, drain);
    let measuring = registry.serve(listeners.metrics, ended);
    let (served, measured) = tokio::join!(serving, measuring);
    served?;
    measured.map_err(Error::Metrics)
}

/// Looks at the machine again and again; a record that has changed is registered.
async fn look_again(
    config: &Config,
    context: &Context,
    address: &str,
    (fingerprints, offers): (&BTreeMap<&'static str, Fingerprint>, &Offers),
    node: watch::Sender<Node>,
    ended: CancellationToken,
) {
    // A machine that is only pretended does not change.
    let Some(directory) = context.alloc_dir.as_deref() else {
        return;
    };
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            () = sleep(config.fingerprint_interval) => {}
        }
        let identity = &context.identity;
        let alloc_dir = Some(directory);
        let found = fingerprint::node(config, identity, alloc_dir, address, fingerprints, offers);
        let is_changed = node.send_if_modified(|known| {
            let is_changed = *known != found;
            *known = found;
            is_changed
        });
        if is_changed {
            info!("the machine has changed");
        }
    }
}
