//! All services in one process: built, run, supervised, and stopped in order.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use embedded_etcd::EmbeddedEtcd;
use service_kit::run::BoxError;
use service_kit::{CancellationToken, EtcdConfig, ListenConfig, TlsConfig, connect_lazy, request};
use tokio::task::JoinSet;
use tracing::error;

use super::nodes::{GRACE, node_config, shared_config};
use super::{keyring, leftover};
use crate::args::dev::Dev;

/// Timeout of the start, which takes about a second on an idle machine.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// `compaction_history` of `kafila dev`, whose default is 1 h: long enough for a reader of events that was
/// stopped, short enough for memory.
const DEV_HISTORY: Duration = Duration::from_secs(10 * 60);

/// Poll interval while waiting for ready nodes.
const READY_PAUSE: Duration = Duration::from_millis(20);

/// Allocations named in a progress message during shutdown.
const MAX_NAMES: usize = 5;

type Ended = (&'static str, Result<(), BoxError>);

/// Addresses of the running services. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    pub(super) gateway: String,
    pub(super) store: String,
    node_count: usize,
}

/// The running services.
pub(super) struct Suite {
    addresses: Addresses,
    etcd: EmbeddedEtcd,
    services: JoinSet<Ended>,
    nodes: JoinSet<Ended>,
    drain_services: CancellationToken,
    drain_nodes: CancellationToken,
    /// Directory of state and allocations.
    directory: PathBuf,
    /// The same directory without -data-dir, with its lock; removed on exit.
    _scratch: Option<(std::fs::File, tempfile::TempDir)>,
}

/// Spawns a service that runs until the token is cancelled.
macro_rules! spawn {
    ($set:expr, $name:literal, $app:expr, $drain:expr) => {{
        let (app, drain) = ($app, $drain.clone());
        $set.spawn(async move { ($name, app.run(drain).await.map_err(BoxError::from)) });
    }};
}

/// The default config of a service, with the address of the store.
macro_rules! config {
    ($service:ident, $etcd:expr, $listen:expr) => {
        $service::Config {
            etcd: $etcd.clone(),
            listen: $listen,
            tls: TlsConfig::insecure(),
            shutdown_grace_period: GRACE,
            ..$service::Config::default()
        }
    };
}

impl Suite {
    /// Starts the store, every service and the nodes; returns once all ports are bound.
    ///
    /// # Errors
    /// The gateway would listen beyond loopback, the settings of the nodes are wrong, a port is taken, or the
    /// data directory cannot be used.
    pub(super) async fn start(args: &Dev) -> Result<Self, BoxError> {
        check_exposure(args)?;
        let shared = shared_config(args.node_config.as_deref())?;
        let (directory, scratch) = match &args.data_dir {
            Some(directory) => (directory.clone(), None),
            None => {
                let scratch = tempfile::Builder::new()
                    .prefix(leftover::PREFIX)
                    .tempdir()?;
                let lock = leftover::lock(scratch.path())?;
                (scratch.path().to_owned(), Some((lock, scratch)))
            }
        };
        std::fs::create_dir_all(&directory).map_err(|error| {
            format!(
                "cannot use {} as the data directory: {error}",
                directory.display()
            )
        })?;
        let directory = directory.canonicalize()?;
        let storage = match &args.data_dir {
            Some(_) => embedded_etcd::Config::on_disk(directory.join("store.redb")),
            None => embedded_etcd::Config::in_memory(),
        };
        let etcd = EmbeddedEtcd::start(storage.bounded())
            .await
            .map_err(|error| cannot_store(&directory, error))?;
        let (mut services, mut nodes) = (JoinSet::new(), JoinSet::new());
        let (drain_services, drain_nodes) = (CancellationToken::new(), CancellationToken::new());

        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let store_address = format!("http://{}", listener.local_addr()?);
        // Stops with the store, after the services.
        let serving = etcd.serve(listener, CancellationToken::new());
        tokio::spawn(async move {
            if let Err(error) = serving.await {
                error!(%error, "lost the connection to the store");
            }
        });

        let etcd_config = EtcdConfig {
            endpoints: vec![store_address.clone()],
            ..EtcdConfig::default()
        };
        let any = ListenConfig::default;
        let listen = gateway_listens(args.listen)?;
        let mut config = config!(api_gateway, etcd_config, listen);
        config.tls.dangerously_expose_plaintext = args.dangerously_expose_plaintext;
        config.keyring_key_file = Some(keyring::ensure(&directory)?);
        let gateway = api_gateway::App::build(config)
            .await
            .map_err(|error| cannot_listen(args.listen, error.into()))?;
        let gateway_address = gateway.address().to_owned();
        let broker = eval_broker::App::build(config!(eval_broker, etcd_config, any())).await?;
        let applier = plan_applier::App::build(config!(plan_applier, etcd_config, any())).await?;
        let worker =
            scheduler_worker::App::build(config!(scheduler_worker, etcd_config, any())).await?;
        let watcher =
            deployment_watcher::App::build(config!(deployment_watcher, etcd_config, any())).await?;
        let mut controller = config!(cluster_controller, etcd_config, any());
        controller.compaction_history = DEV_HISTORY;
        let controller = cluster_controller::App::build(controller).await?;
        for number in 0..args.nodes {
            let config = node_config(args, &shared, &directory, &gateway_address, number);
            let node = client_node::App::build(config).await?;
            spawn!(nodes, "client-node", node, drain_nodes);
        }
        spawn!(services, "api-gateway", gateway, drain_services);
        spawn!(services, "eval-broker", broker, drain_services);
        spawn!(services, "plan-applier", applier, drain_services);
        spawn!(services, "scheduler-worker", worker, drain_services);
        spawn!(services, "deployment-watcher", watcher, drain_services);
        spawn!(services, "cluster-controller", controller, drain_services);
        Ok(Self {
            addresses: Addresses {
                gateway: gateway_address,
                store: store_address,
                node_count: usize::from(args.nodes),
            },
            etcd,
            services,
            nodes,
            drain_services,
            drain_nodes,
            directory,
            _scratch: scratch,
        })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn addresses(&self) -> Addresses {
        self.addresses.clone()
    }

    /// Waits until a service or the store stops unexpectedly, and returns the reason.
    pub(super) async fn failure(&mut self) -> BoxError {
        let (name, ended) = tokio::select! {
            Some(ended) = self.services.join_next() => read(ended),
            Some(ended) = self.nodes.join_next() => read(ended),
            stopped = self.etcd.stopped() => ("the store", stopped.map_err(BoxError::from)),
        };
        match ended {
            Ok(()) => format!("{name} stopped unexpectedly").into(),
            Err(error) => format!("{name}: {}", service_kit::run::chain(error.as_ref())).into(),
        }
    }

    /// Stops nodes, then services, then the store, so that final reports are stored.
    pub(super) async fn stop(mut self) {
        self.drain_nodes.cancel();
        end(&mut self.nodes).await;
        self.drain_services.cancel();
        end(&mut self.services).await;
        self.etcd.shutdown().await;
    }
}

impl Addresses {
    /// Waits until all nodes are ready.
    ///
    /// # Errors
    /// The timeout passed; the error has the last observation.
    pub(super) async fn ready(&self) -> Result<(), BoxError> {
        let mut last = "no answer from the gateway".to_owned();
        let waiting = async {
            loop {
                match self.ready_nodes().await {
                    Ok(count) if count >= self.node_count => return,
                    Ok(count) => last = format!("{count} of {} nodes ready", self.node_count),
                    Err(error) => last = error.to_string(),
                }
                tokio::time::sleep(READY_PAUSE).await;
            }
        };
        let waited = tokio::time::timeout(READY_TIMEOUT, waiting).await;
        waited.map_err(|_| {
            format!("not ready after {READY_TIMEOUT:?}: {last}; -log info shows more").into()
        })
    }

    /// Returns the names of live allocations, such as `web.server[0]`.
    ///
    /// # Errors
    /// The gateway does not answer.
    pub(super) async fn live_allocations(&self) -> Result<Vec<String>, BoxError> {
        let mut client =
            proto::v1::allocations_client::AllocationsClient::new(connect_lazy(&self.gateway)?);
        let message = proto::v1::ListAllocationsRequest {
            options: Some(proto::v1::QueryOptions {
                namespace: "*".to_owned(),
                ..proto::v1::QueryOptions::default()
            }),
        };
        let answer = client
            .list(request(message, Duration::from_secs(2)))
            .await?;
        let allocs = answer.into_inner().allocations.into_iter();
        let is_live = |alloc: &proto::v1::Allocation| {
            matches!(alloc.client_status.as_str(), "pending" | "running")
        };
        let names = allocs.filter(is_live).map(|alloc| alloc.name);
        Ok(names.take(MAX_NAMES).collect())
    }

    async fn ready_nodes(&self) -> Result<usize, BoxError> {
        let channel = connect_lazy(&self.gateway)?;
        let mut client = proto::v1::nodes_client::NodesClient::new(channel);
        let message = proto::v1::ListNodesRequest::default();
        let answer = client
            .list(request(message, Duration::from_secs(2)))
            .await?;
        let nodes = answer.into_inner().nodes;
        Ok(nodes.iter().filter(|node| node.status == "ready").count())
    }
}

async fn end(set: &mut JoinSet<Ended>) {
    while let Some(ended) = set.join_next().await {
        let (name, result) = read(ended);
        if let Err(error) = result {
            error!(
                service = name,
                error = service_kit::run::chain(error.as_ref()),
                "service failed"
            );
        }
    }
}

fn read(ended: Result<Ended, tokio::task::JoinError>) -> Ended {
    ended.unwrap_or_else(|error| ("a service", Err(error.into())))
}

/// Checks that plaintext beyond loopback is asked for.
fn check_exposure(args: &Dev) -> Result<(), BoxError> {
    if args.listen.ip().is_loopback() || args.dangerously_expose_plaintext {
        return Ok(());
    }
    Err(format!(
        "other machines reach {}, and kafila dev has neither encryption nor authentication: -listen \
         chooses another address, as in 127.0.0.1:4646; -dangerously-expose-plaintext accepts that each \
         machine that reaches it runs commands as this user",
        args.listen
    )
    .into())
}

/// Returns the listen config of the gateway. A wildcard address cannot be dialled, so the gateway
/// advertises the loopback address, which is enough for clients in this process.
fn gateway_listens(address: SocketAddr) -> std::io::Result<ListenConfig> {
    let mut grpc = address;
    let mut advertise = None;
    if address.ip().is_unspecified() {
        if address.port() == 0 {
            // The advertised port must be known before the gateway binds it.
            grpc = std::net::TcpListener::bind(address)?.local_addr()?;
        }
        let host = match address {
            SocketAddr::V4(_) => "127.0.0.1",
            SocketAddr::V6(_) => "[::1]",
        };
        advertise = Some(format!("http://{host}:{}", grpc.port()));
    }
    Ok(ListenConfig {
        grpc,
        advertise,
        ..ListenConfig::default()
    })
}

/// Adds advice to the error of a store that cannot be opened.
fn cannot_store(directory: &Path, error: embedded_etcd::Error) -> BoxError {
    match error {
        embedded_etcd::Error::InUse { .. } => format!(
            "another kafila dev uses {}. Stop it, or choose another directory with -data-dir",
            directory.display()
        )
        .into(),
        error => error.into(),
    }
}

/// Adds advice to the error of a gateway that cannot listen.
fn cannot_listen(address: SocketAddr, error: BoxError) -> BoxError {
    let chain = service_kit::run::chain(error.as_ref());
    // `kafila dev` has a flag instead of the setting.
    let chain = chain.replace(" (`listen.grpc`)", "");
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error.as_ref());
    let mut is_taken = false;
    while let Some(error) = cause {
        let kind = error.downcast_ref().map(std::io::Error::kind);
        is_taken |= kind == Some(std::io::ErrorKind::AddrInUse);
        cause = error.source();
    }
    let question = if is_taken {
        "is another `kafila dev` running? "
    } else {
        ""
    };
    format!("{chain}; {question}-listen chooses another address than {address}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_on_every_interface_has_an_address_that_can_be_dialled() {
        let listens = |text: &str| gateway_listens(text.parse().unwrap()).unwrap();
        let one = listens("127.0.0.1:4646");
        assert_eq!((one.advertise, one.grpc.port()), (None, 4646));
        let all = listens("0.0.0.0:4950");
        assert_eq!(all.advertise.as_deref(), Some("http://127.0.0.1:4950"));
        assert!(all.grpc.ip().is_unspecified());
        let six = listens("[::]:4950");
        assert_eq!(six.advertise.as_deref(), Some("http://[::1]:4950"));
        let any = listens("0.0.0.0:0");
        assert_eq!(
            any.advertise,
            Some(format!("http://127.0.0.1:{}", any.grpc.port()))
        );
    }

    #[test]
    fn another_suite_is_suspected_only_where_the_address_is_taken() {
        let address: SocketAddr = "10.9.9.9:4646".parse().unwrap();
        let say = |kind: std::io::ErrorKind| {
            cannot_listen(address, std::io::Error::from(kind).into()).to_string()
        };
        assert!(say(std::io::ErrorKind::AddrInUse).contains("another `kafila dev`"));
        let other = say(std::io::ErrorKind::AddrNotAvailable);
        assert!(!other.contains("another `kafila dev`"), "{other}");
        assert!(other.contains("-listen"), "{other}");
    }
}
