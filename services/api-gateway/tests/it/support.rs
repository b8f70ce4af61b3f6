//! A store, gateways over it, their clients, and objects that tests put into the store.

use std::time::Duration;

use api_gateway::{App, Config};
use model::{Allocation, Deployment, Job, LeaderInfo, Node, ProcessKey};
use proto::internal::v1::node_sessions_client::NodeSessionsClient;
use proto::v1;
use proto::v1::agent_client::AgentClient;
use proto::v1::allocations_client::AllocationsClient;
use proto::v1::deployments_client::DeploymentsClient;
use proto::v1::evaluations_client::EvaluationsClient;
use proto::v1::events_client::EventsClient;
use proto::v1::jobs_client::JobsClient;
use proto::v1::namespaces_client::NamespacesClient;
use proto::v1::node_pools_client::NodePoolsClient;
use proto::v1::nodes_client::NodesClient;
use proto::v1::operator_client::OperatorClient;
use proto::v1::scaling_policies_client::ScalingPoliciesClient;
use proto::v1::variables_client::VariablesClient;
use proto::v1::volumes_client::VolumesClient;
use service_kit::{CancellationToken, TracedChannel, connect_lazy};
use state::{Entity, Key};
use store::{Client, ClientOptions, Commit, Stored};
use store_test_kit::TestStore;
use test_kit::etcd::Etcd;
use test_kit::proxy::Proxy;
use test_kit::writes;
use test_kit::{builders, wait_for};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;

/// Long enough for a loaded machine, short enough to notice.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// A gateway that runs until dropped.
pub(crate) struct Gateway {
    address: String,
    pub(crate) metrics: std::net::SocketAddr,
    pub(crate) drain: CancellationToken,
    pub(crate) running: JoinHandle<Result<(), api_gateway::Error>>,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.drain.cancel();
        self.running.abort();
    }
}

/// The store; gone when dropped.
enum Server {
    Embedded { _store: TestStore },
    Real { _etcd: Box<Etcd> },
}

/// One store and some gateways over it.
pub(crate) struct Suite {
    _etcd: Server,
    /// Between the gateways and the store.
    pub(crate) proxy: Proxy,
    pub(crate) store: Client,
    pub(crate) gateways: Vec<Gateway>,
}

impl Suite {
    pub(crate) async fn start(gateways: usize) -> Self {
        Self::start_with(gateways, |_| {}).await
    }

    pub(crate) async fn start_with(gateways: usize, edit: impl Fn(&mut Config)) -> Self {
        let etcd = TestStore::start().await;
        let (address, store) = (etcd.address, etcd.client().await);
        let etcd = Server::Embedded { _store: etcd };
        Self::over(etcd, address, store, gateways, edit).await
    }

    /// Starts one gateway over a real etcd.
    pub(crate) async fn over_etcd(etcd: Etcd, edit: impl Fn(&mut Config)) -> Self {
        let (address, endpoints) = (etcd.address(), etcd.endpoints());
        let store = Client::connect(&endpoints, ClientOptions::default());
        let store = store.await.unwrap();
        let etcd = Server::Real {
            _etcd: Box::new(etcd),
        };
        Self::over(etcd, address, store, 1, edit).await
    }

    async fn over(
        etcd: Server,
        address: std::net::SocketAddr,
        store: Client,
        gateways: usize,
        edit: impl Fn(&mut Config),
    ) -> Self {
        let proxy = Proxy::start(address).await.unwrap();
        let mut suite = Self {
            _etcd: etcd,
            proxy,
            store,
            gateways: Vec::new(),
        };
        for _ in 0..gateways {
            suite.add_gateway(&edit).await;
        }
        suite
    }

    pub(crate) async fn add_gateway(&mut self, edit: impl Fn(&mut Config)) {
        let mut config = Config::default();
        config.etcd.endpoints = vec![self.proxy.endpoint()];
        config.listen = service_kit::ListenConfig::default();
        config.tls = service_kit::TlsConfig::insecure();
        // Longer waits only slow tests down.
        config.request_timeout = Duration::from_secs(5);
        config.shutdown_grace_period = Duration::from_secs(5);
        edit(&mut config);
        let app = App::build(config).await.unwrap();
        let (address, metrics) = (app.address().to_owned(), app.metrics_address().unwrap());
        let drain = CancellationToken::new();
        let running = tokio::spawn(app.run(drain.clone()));
        // Its last write of its own: tests count revisions.
        let registration = Key::Process(ProcessKey {
            service: api_gateway::SERVICE.to_owned(),
            address: address.clone(),
        });
        wait_for("the registration of the gateway", WAIT_LIMIT, async || {
            self.store.get(&registration).await.unwrap().map(drop)
        })
        .await;
        self.gateways.push(Gateway {
            address,
            metrics,
            drain,
            running,
        });
    }

    pub(crate) fn channel(&self, gateway: usize) -> TracedChannel {
        connect_lazy(&self.gateways[gateway].address).unwrap()
    }

    pub(crate) fn address(&self, gateway: usize) -> &str {
        &self.gateways[gateway].address
    }

    pub(crate) fn agent(&self, gateway: usize) -> AgentClient<TracedChannel> {
        AgentClient::new(self.channel(gateway))
    }

    pub(crate) fn jobs(&self, gateway: usize) -> JobsClient<TracedChannel> {
        JobsClient::new(self.channel(gateway))
    }

    pub(crate) fn allocations(&self, gateway: usize) -> AllocationsClient<TracedChannel> {
        AllocationsClient::new(self.channel(gateway))
    }

    pub(crate) fn evaluations(&self, gateway: usize) -> EvaluationsClient<TracedChannel> {
        EvaluationsClient::new(self.channel(gateway))
    }

    pub(crate) fn events(&self, gateway: usize) -> EventsClient<TracedChannel> {
        EventsClient::new(self.channel(gateway))
    }

    pub(crate) fn deployments(&self, gateway: usize) -> DeploymentsClient<TracedChannel> {
        DeploymentsClient::new(self.channel(gateway))
    }

    pub(crate) fn nodes(&self, gateway: usize) -> NodesClient<TracedChannel> {
        NodesClient::new(self.channel(gateway))
    }

    pub(crate) fn namespaces(&self, gateway: usize) -> NamespacesClient<TracedChannel> {
        NamespacesClient::new(self.channel(gateway))
    }

    pub(crate) fn variables(&self, gateway: usize) -> VariablesClient<TracedChannel> {
        VariablesClient::new(self.channel(gateway))
    }

    pub(crate) fn node_pools(&self, gateway: usize) -> NodePoolsClient<TracedChannel> {
        NodePoolsClient::new(self.channel(gateway))
    }

    pub(crate) fn scaling_policies(&self, gateway: usize) -> ScalingPoliciesClient<TracedChannel> {
        ScalingPoliciesClient::new(self.channel(gateway))
    }

    pub(crate) fn volumes(&self, gateway: usize) -> VolumesClient<TracedChannel> {
        VolumesClient::new(self.channel(gateway))
    }

    pub(crate) fn operator(&self, gateway: usize) -> OperatorClient<TracedChannel> {
        OperatorClient::new(self.channel(gateway))
    }

    pub(crate) fn sessions(&self, gateway: usize) -> NodeSessionsClient<TracedChannel> {
        NodeSessionsClient::new(self.channel(gateway))
    }

    /// Registers a job through the first gateway.
    pub(crate) async fn register(&self, job: &Job) -> v1::RegisterJobResponse {
        let request = v1::RegisterJobRequest {
            job: Some(job.into()),
            ..Default::default()
        };
        self.jobs(0)
            .register(ask(request))
            .await
            .unwrap()
            .into_inner()
    }

    /// Stores an object without a gateway and without compares; returns the revision.
    pub(crate) async fn put(&self, key: &Key, entity: &Entity) -> u64 {
        let writer = self.store.unfenced_writer();
        let mut txn = writer.txn();
        match self.get(key).await {
            Some(stored) => txn
                .add(&writes::update(key, stored.mod_revision, entity))
                .unwrap(),
            None => txn.add(&writes::create(key, entity)).unwrap(),
        };
        match writer.commit_surely(&txn, WAIT_LIMIT).await.unwrap() {
            Commit::Done { revision } => revision,
            conflict @ Commit::Conflict(_) => panic!("{conflict:?}"),
        }
    }

    pub(crate) async fn delete(&self, key: &Key) -> u64 {
        let writer = self.store.unfenced_writer();
        let mut txn = writer.txn();
        txn.add(&writes::delete(
            key,
            self.get(key).await.unwrap().mod_revision,
        ))
        .unwrap();
        writer
            .commit_surely(&txn, WAIT_LIMIT)
            .await
            .unwrap()
            .revision()
            .unwrap()
    }

    pub(crate) async fn get(&self, key: &Key) -> Option<Stored> {
        self.store.get(key).await.unwrap()
    }

    /// Compacts the history before `revision`.
    pub(crate) async fn compact(&self, revision: u64) {
        let endpoints = self.store.endpoints();
        let raw = etcd_client::Client::connect(endpoints, None).await.unwrap();
        let revision = i64::try_from(revision).unwrap();
        raw.kv_client().compact(revision, None).await.unwrap();
    }

    pub(crate) async fn put_alloc(&self, alloc: &Allocation) -> u64 {
        self.put(
            &Key::Alloc(alloc.id),
            &Entity::Alloc(Box::new(alloc.clone())),
        )
        .await
    }

    pub(crate) async fn put_node(&self, node: &Node) -> u64 {
        self.put(&Key::Node(node.id), &Entity::Node(Box::new(node.clone())))
            .await
    }

    pub(crate) async fn put_deployment(&self, deployment: &Deployment) -> u64 {
        let entity = Entity::Deployment(Box::new(deployment.clone()));
        self.put(&Key::Deployment(deployment.id), &entity).await
    }

    /// Stores a leader of a service.
    pub(crate) async fn elect(&self, service: &str, address: &str) -> u64 {
        let info = LeaderInfo {
            address: address.to_owned(),
            replica: "r1".to_owned(),
        };
        self.put(&Key::Election(service.to_owned()), &Entity::Election(info))
            .await
    }

    /// Returns the answer at the gateway's HTTP address, with its headers.
    pub(crate) async fn get_http(&self, gateway: usize, path: &str) -> String {
        let address = self.gateways[gateway].metrics;
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    pub(crate) async fn is_ready(&self, gateway: usize) -> bool {
        let answer = self.get_http(gateway, "/readyz").await;
        answer.starts_with("HTTP/1.1 200")
    }

    /// Returns the gateway's metrics.
    pub(crate) async fn metrics(&self, gateway: usize) -> String {
        test_kit::scrape(self.gateways[gateway].metrics)
            .await
            .unwrap()
    }
}

/// Returns a request with a deadline.
pub(crate) fn ask<T>(message: T) -> tonic::Request<T> {
    service_kit::request(message, WAIT_LIMIT)
}

/// Returns options for a read of the asked gateway's own replica.
pub(crate) fn stale() -> Option<v1::QueryOptions> {
    Some(v1::QueryOptions {
        consistency: v1::Consistency::Stale.into(),
        ..v1::QueryOptions::default()
    })
}

/// Returns node `n<number>`, which answers nowhere.
pub(crate) fn node(number: u128) -> Node {
    Node {
        address: "http://127.0.0.1:1".to_owned(),
        ..builders::node(number)
    }
}

/// Returns a job of one task that runs as a mock.
pub(crate) fn job(id: &str) -> Job {
    let mut job = builders::service(id, 2);
    // The stored form, independent of defaults: registering it again changes nothing.
    job.task_groups[0].update = None;
    job
}

/// Returns an allocation of a job that was registered at `create_index`.
pub(crate) fn alloc(number: u128, job: &Job, node: &Node, create_index: u64) -> Allocation {
    Allocation {
        job_create_index: create_index,
        ..builders::allocation(number, job, node.id)
    }
}
