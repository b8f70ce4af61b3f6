//! A store, the two leaders that a worker talks to, and the worker.

use std::sync::atomic::{AtomicU64, Ordering};

use model::{Algorithm, Evaluation, Job, LeaderInfo, NodeId, SchedulerConfiguration};
use proto::internal::v1::Delivery;
use proto::internal::v1::eval_broker_server::EvalBrokerServer;
use proto::internal::v1::plan_applier_server::PlanApplierServer;
use scheduler_worker::{App, Config, Error};
use service_kit::CancellationToken;
use state::{Key, Snapshot};
use store::{Commit, Replica, ReplicaOptions, Txn};
use store_test_kit::TestStore;
use test_kit::writes;
use test_kit::{builders, wait_for};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use crate::fakes::{Answer, FakeApplier, FakeBroker, Received, TIMEOUT};

pub(crate) struct Suite {
    _etcd: TestStore,
    endpoint: String,
    replica: Replica,
    pub(crate) broker: FakeBroker,
    pub(crate) applier: FakeApplier,
    numbers: AtomicU64,
    pub(crate) drain: CancellationToken,
    pub(crate) running: Option<JoinHandle<Result<(), Error>>>,
}

impl Drop for Suite {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

impl Suite {
    /// Starts everything but the worker, with some nodes.
    pub(crate) async fn start() -> Self {
        let etcd = TestStore::start().await;
        let (endpoint, store) = (etcd.endpoint.clone(), etcd.client().await);
        let options = ReplicaOptions::default();
        let replica = Replica::start(store, options, CancellationToken::new());
        let broker = FakeBroker::default();
        let applier = FakeApplier {
            replica: replica.clone(),
            answers: std::sync::Arc::default(),
            plans: std::sync::Arc::default(),
        };
        let suite = Self {
            _etcd: etcd,
            endpoint,
            replica,
            broker: broker.clone(),
            applier: applier.clone(),
            numbers: AtomicU64::new(1),
            drain: CancellationToken::new(),
            running: None,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = Server::builder()
            .add_service(EvalBrokerServer::new(broker))
            .add_service(PlanApplierServer::new(applier))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(server);
        suite.elect("eval-broker", &address).await;
        suite.elect("plan-applier", &address).await;
        suite.add_nodes(4).await;
        suite
    }

    /// Starts the worker and waits until it takes evaluations.
    pub(crate) async fn work(&mut self, edit: impl FnOnce(&mut Config)) {
        let mut config = Config {
            workers: 2,
            tls: service_kit::TlsConfig::insecure(),
            ..Config::default()
        };
        config.etcd.endpoints = vec![self.endpoint.clone()];
        edit(&mut config);
        let app = App::build(config).await.unwrap();
        self.running = Some(tokio::spawn(app.run(self.drain.clone())));
        self.wait_for_received("a session", |received| {
            matches!(received, Received::Opened { .. })
        })
        .await;
    }

    fn txn(&self) -> Txn {
        self.replica.client().unfenced_writer().txn()
    }

    async fn commit(&self, txn: &Txn) -> u64 {
        match self
            .replica
            .client()
            .unfenced_writer()
            .commit(txn)
            .await
            .unwrap()
        {
            Commit::Done { revision } => revision,
            Commit::Conflict(conflict) => panic!("{conflict:?}"),
        }
    }

    async fn elect(&self, service: &str, address: &str) {
        let info = LeaderInfo {
            address: address.to_owned(),
            replica: "fake".to_owned(),
        };
        let mut txn = self.txn();
        txn.add(&writes::create(&Key::Election(service.to_owned()), &info))
            .unwrap();
        self.commit(&txn).await;
    }

    /// Has another term of a service begin, led from the same address.
    pub(crate) async fn elect_again(&self, service: &str) {
        let snapshot = self.newest().await;
        let leader = snapshot.leader(service).unwrap().clone();
        let mut txn = self.txn();
        let key = Key::Election(service.to_owned());
        txn.add(&writes::delete(&key, leader.modify_index)).unwrap();
        self.commit(&txn).await;
        self.elect(service, &leader.value.address).await;
    }

    async fn add_nodes(&self, count: u128) {
        let mut txn = self.txn();
        for number in 1..=count {
            let node = builders::node(number);
            txn.add(&writes::create(&Key::Node(node.id), &node))
                .unwrap();
        }
        self.commit(&txn).await;
    }

    /// Registers a service job and an evaluation of it; returns the evaluation and its index.
    pub(crate) async fn register(&self, name: &str, count: u32) -> (Evaluation, u64) {
        let job: Job = builders::service(name, count);
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let eval = builders::evaluation(number.into(), &job);
        let mut txn = self.txn();
        txn.add(&writes::create(&Key::Job(job.key()), &job))
            .unwrap();
        txn.add(&writes::create(&Key::JobVersion(job.key(), 0), &job))
            .unwrap();
        txn.add(&writes::create(&Key::Eval(eval.id), &eval))
            .unwrap();
        let revision = self.commit(&txn).await;
        (eval, revision)
    }

    /// Stores the scheduler's configuration, with this algorithm.
    pub(crate) async fn choose(&self, algorithm: Algorithm) {
        let config = SchedulerConfiguration {
            algorithm,
            ..SchedulerConfiguration::default()
        };
        let snapshot = self.newest().await;
        let mut txn = self.txn();
        let key = Key::SchedulerConfig;
        match snapshot.stored_scheduler_config() {
            Some(stored) => txn
                .add(&writes::update(&key, stored.modify_index, &config))
                .unwrap(),
            None => txn.add(&writes::create(&key, &config)).unwrap(),
        };
        self.commit(&txn).await;
    }

    /// Registers a service job of one allocation, lets the worker place it, and returns its node.
    pub(crate) async fn place(&self, name: &str) -> NodeId {
        let (eval, index) = self.register(name, 1).await;
        self.deliver(&eval, index, name);
        let acked = Received::Ack(name.to_owned());
        self.wait_for_received("the ack", |received| *received == acked)
            .await;
        let snapshot = self.newest().await;
        let view = snapshot.allocs_by_job(&eval.job).next().unwrap();
        view.alloc.node_id
    }

    /// Delivers an evaluation under the token `token`.
    pub(crate) fn deliver(&self, eval: &Evaluation, wait_index: u64, token: &str) {
        self.broker.deliver(Delivery {
            eval_id: eval.id.to_string(),
            token: token.to_owned(),
            wait_index,
            attempt: 1,
            nack_timeout: Some(proto::duration_to_wire(TIMEOUT)),
        });
    }

    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.applier.answers.lock().unwrap().extend(answers);
    }

    pub(crate) fn plan_count(&self) -> usize {
        self.applier.plans.lock().unwrap().len()
    }

    pub(crate) async fn wait_for_received(
        &self,
        what: &str,
        is_it: impl Fn(&Received) -> bool,
    ) -> Received {
        let received = &self.broker;
        wait_for(what, TIMEOUT, async || {
            received
                .received()
                .into_iter()
                .find(|received| is_it(received))
        })
        .await
    }

    pub(crate) async fn newest(&self) -> Snapshot {
        self.replica.linearizable(TIMEOUT).await.unwrap()
    }
}
