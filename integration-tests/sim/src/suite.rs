//! The suite under test: every service on a machine of its own.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use client_node::Memory;
use embedded_etcd::{AutoCompaction, EmbeddedEtcd};
use service_kit::{CancellationToken, EtcdConfig, ListenConfig, TlsConfig};

use crate::checker::Checker;
use crate::environment::{Environment, HostId, Software};
use crate::host_ips::HostIps;
use crate::journal::Disk;

const STORE_PORT: u16 = 2379;
const GRPC_PORT: u16 = 7000;
const METRICS_PORT: u16 = 9000;

/// Time to live and grace of heartbeats: shorter than in production, so that nodes go down within a
/// trial of half a minute.
const HEARTBEAT_TTL: Duration = Duration::from_secs(3);
const HEARTBEAT_GRACE: Duration = Duration::from_secs(2);
/// The silence after which a node is marked down, in milliseconds.
pub(crate) const SILENCE_LIMIT: u64 = (HEARTBEAT_TTL.as_secs() + HEARTBEAT_GRACE.as_secs()) * 1_000;

/// Age of the revisions that etcd compacts, in trials with compaction: shorter than a network cut.
const COMPACTION_AGE: Duration = Duration::from_secs(3);

/// The elected services, in the order of their machines.
const ELECTED: [&str; 4] = [
    eval_broker::SERVICE,
    plan_applier::SERVICE,
    deployment_watcher::SERVICE,
    cluster_controller::SERVICE,
];

/// The machines by role.
pub struct Suite {
    pub etcd: HostId,
    pub disk: Disk,
    pub gateways: Vec<HostId>,
    pub controllers: Vec<HostId>,
    /// All other services, the cluster-controllers among them.
    pub services: Vec<HostId>,
    pub nodes: Vec<(HostId, Memory)>,
    pub host_ips: HostIps,
}

type Running = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Returns software that builds and runs an app. It is never cancelled: a machine ends by a crash.
macro_rules! software {
    ($app:ident, $config:expr) => {{
        let config = $config;
        let software: Software = Box::new(move || {
            let config = config.clone();
            let running = async move {
                let app = $app::App::build(config).await;
                let app = app.map_err(|error| error.to_string())?;
                let ended = Box::pin(app.run(CancellationToken::new())).await;
                ended.map_err(|error| error.to_string())
            };
            Box::pin(running) as Running
        });
        software
    }};
}

impl Suite {
    /// Adds the machines, with consecutive addresses in 10.0.0.0/24.
    pub fn start(
        environment: &mut Environment,
        seed: u64,
        checker: &Checker,
        node_count: usize,
    ) -> Self {
        let disk = Disk::new(seed, checker.clone());
        let etcd = environment.add("etcd", store(disk.clone(), seed.is_multiple_of(2)));
        let store = EtcdConfig {
            endpoints: vec![format!("http://{}:{STORE_PORT}", environment.address(etcd))],
            ..EtcdConfig::default()
        };
        let first_gateway = etcd + 1;
        let gateway_addresses: Vec<String> = (first_gateway..first_gateway + 2)
            .map(|id| format!("http://{}:{GRPC_PORT}", address(id).ip()))
            .collect();
        let mut gateways = Vec::new();
        for number in 0..2 {
            let config = gateway_config(&store, listen(environment), &gateway_addresses);
            let software = software!(api_gateway, config);
            gateways.push(environment.add(&format!("gateway-{number}"), software));
        }
        let mut services = Vec::new();
        let mut controllers = Vec::new();
        for number in 0..2 {
            let broker = software!(eval_broker, broker_config(&store, listen(environment)));
            services.push(environment.add(&format!("broker-{number}"), broker));
            let applier = software!(plan_applier, applier_config(&store, listen(environment)));
            services.push(environment.add(&format!("applier-{number}"), applier));
            let config = watcher_config(&store, listen(environment));
            let watcher = software!(deployment_watcher, config);
            services.push(environment.add(&format!("watcher-{number}"), watcher));
            let config = controller_config(&store, listen(environment));
            let controller = software!(cluster_controller, config);
            controllers.push(environment.add(&format!("controller-{number}"), controller));
            services.extend(controllers.last());
            let worker = software!(scheduler_worker, worker_config(&store, listen(environment)));
            services.push(environment.add(&format!("worker-{number}"), worker));
        }
        for (elected, service) in services.chunks(5).flat_map(|five| five.iter().zip(ELECTED)) {
            checker.add_role(environment.address(*elected), service);
        }
        let host_ips = HostIps::default();
        let nodes = (0..node_count)
            .map(|number| {
                let memory = Memory::default();
                let config = node_config(number, listen(environment), &gateway_addresses);
                let id = environment.hosts().count();
                let software = node(config, memory.clone(), (id, host_ips.clone()));
                let added = environment.add(&format!("node-{number}"), software);
                assert_eq!(added, id, "machines are numbered in order");
                (added, memory)
            })
            .collect();
        Self {
            etcd,
            disk,
            gateways,
            controllers,
            services,
            nodes,
            host_ips,
        }
    }

    /// Returns the URLs of the gateways.
    pub fn gateway_addresses(&self) -> Vec<String> {
        let gateways = self.gateways.iter();
        gateways
            .map(|id| format!("http://{}:{GRPC_PORT}", address(*id).ip()))
            .collect()
    }
}

/// Returns the RPC address of machine `id`.
fn address(id: HostId) -> SocketAddr {
    let number = u8::try_from(id + 1).expect("there are few machines");
    SocketAddr::from(([10, 0, 0, number], GRPC_PORT))
}

/// Returns the listen addresses of the next machine.
fn listen(environment: &Environment) -> ListenConfig {
    let grpc = address(environment.hosts().count());
    ListenConfig {
        grpc,
        metrics: SocketAddr::new(grpc.ip(), METRICS_PORT),
        advertise: None,
    }
}

fn store(disk: Disk, compacts: bool) -> Software {
    Box::new(move || {
        let disk = disk.clone();
        Box::pin(async move {
            let mut config = embedded_etcd::Config::in_memory();
            if compacts {
                // A watch that falls behind further has to start over.
                config.auto_compaction = Some(AutoCompaction::Age(COMPACTION_AGE));
            }
            let etcd = EmbeddedEtcd::start_on(config, Arc::new(disk)).await;
            let etcd = etcd.map_err(|error| error.to_string())?;
            let listener = connections::bind(SocketAddr::from(([0, 0, 0, 0], STORE_PORT))).await;
            let listener = listener.map_err(|error| error.to_string())?;
            let serving = etcd.serve_on(listener, CancellationToken::new());
            serving.await.map_err(|error| error.to_string())
        })
    })
}

fn gateway_config(
    store: &EtcdConfig,
    listen: ListenConfig,
    gateways: &[String],
) -> api_gateway::Config {
    api_gateway::Config {
        etcd: store.clone(),
        listen,
        tls: TlsConfig::exposed(),
        gateways: gateways.to_vec(),
        heartbeat_ttl: HEARTBEAT_TTL,
        ..api_gateway::Config::default()
    }
}

fn broker_config(store: &EtcdConfig, listen: ListenConfig) -> eval_broker::Config {
    eval_broker::Config {
        etcd: store.clone(),
        listen,
        tls: TlsConfig::exposed(),
        nack_timeout: Duration::from_secs(8),
        follow_up_delay: Duration::from_secs(3),
        follow_up_spread: Duration::from_secs(2),
        ..eval_broker::Config::default()
    }
}

fn applier_config(store: &EtcdConfig, listen: ListenConfig) -> plan_applier::Config {
    plan_applier::Config {
        etcd: store.clone(),
        listen,
        tls: TlsConfig::exposed(),
        verify_threads: 1,
        ..plan_applier::Config::default()
    }
}

fn watcher_config(store: &EtcdConfig, listen: ListenConfig) -> deployment_watcher::Config {
    deployment_watcher::Config {
        etcd: store.clone(),
        listen,
        tls: TlsConfig::exposed(),
        ..deployment_watcher::Config::default()
    }
}

fn controller_config(store: &EtcdConfig, listen: ListenConfig) -> cluster_controller::Config {
    cluster_controller::Config {
        etcd: store.clone(),
        listen,
        tls: TlsConfig::exposed(),
        heartbeat_ttl: HEARTBEAT_TTL,
        heartbeat_grace: HEARTBEAT_GRACE,
        ..cluster_controller::Config::default()
    }
}

fn worker_config(store: &EtcdConfig, listen: ListenConfig) -> scheduler_worker::Config {
    scheduler_worker::Config {
        etcd: store.clone(),
        listen,
        tls: TlsConfig::exposed(),
        workers: 2,
        ..scheduler_worker::Config::default()
    }
}

fn node_config(number: usize, listen: ListenConfig, gateways: &[String]) -> client_node::Config {
    client_node::Config {
        gateways: gateways.to_vec(),
        data_dir: None,
        listen,
        tls: TlsConfig::exposed(),
        name: Some(format!("node-{number}")),
        cpu_total_compute: 4_000,
        memory_total_mb: 8_192,
        disk_total_mb: 100_000,
        ..client_node::Config::default()
    }
}

fn node(
    config: client_node::Config,
    memory: Memory,
    (id, host_ips): (HostId, HostIps),
) -> Software {
    Box::new(move || {
        let (mut config, memory) = (config.clone(), memory.clone());
        config.host_ip = Some(host_ips.of(id));
        Box::pin(async move {
            let app = client_node::App::build_in(config, &memory).await;
            let app = app.map_err(|error| error.to_string())?;
            let ended = Box::pin(app.run(CancellationToken::new())).await;
            ended.map_err(|error| error.to_string())
        })
    })
}
