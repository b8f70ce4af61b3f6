//! A store, brokers over it, workers of them, and objects in the store by another writer.

use std::time::Duration;

use eval_broker::{App, Config, Error, SERVICE};
use model::{EvalId, Evaluation, Job, Node, SchedulerConfiguration};
use proto::internal::v1::eval_broker_client::EvalBrokerClient;
use proto::internal::v1::{
    AckRequest, Delivery, DequeueRequest, ExtendRequest, NackRequest, StatsRequest, StatsResponse,
};
use proto::v1::ErrorDetail;
use service_kit::{CancellationToken, TracedChannel, connect_lazy, request};
use state::{Entity, Key};
use store::{Client, Commit, Stored, Txn};
use store_test_kit::TestStore;
use test_kit::wait_for;
use test_kit::writes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Long enough for a loaded machine, short enough to notice.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// One replica of the service, running until dropped.
pub(crate) struct Replica {
    pub(crate) address: String,
    metrics: std::net::SocketAddr,
    pub(crate) drain: CancellationToken,
    pub(crate) running: JoinHandle<Result<(), Error>>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.drain.cancel();
        self.running.abort();
    }
}

impl Replica {
    /// Returns its metrics.
    pub(crate) async fn metrics(&self) -> String {
        test_kit::scrape(self.metrics).await.unwrap()
    }
}

/// One store and some replicas over it.
pub(crate) struct Suite {
    _etcd: TestStore,
    endpoint: String,
    pub(crate) store: Client,
    config: Config,
}

/// Everything fast, so that no test waits for a default.
fn fast() -> Config {
    Config {
        initial_nack_delay: Duration::from_millis(10),
        subsequent_nack_delay: Duration::from_millis(10),
        session_grace: Duration::from_millis(50),
        shutdown_grace_period: Duration::from_secs(5),
        tls: service_kit::TlsConfig::insecure(),
        ..Config::default()
    }
}

impl Suite {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(edit: impl FnOnce(&mut Config)) -> Self {
        let etcd = TestStore::start().await;
        let (endpoint, store) = (etcd.endpoint.clone(), etcd.client().await);
        let mut config = fast();
        edit(&mut config);
        config.etcd.endpoints = vec![endpoint.clone()];
        Self {
            _etcd: etcd,
            endpoint,
            store,
            config,
        }
    }

    /// Starts a replica; it leads if there is no leader.
    pub(crate) async fn replica(&self) -> Replica {
        let app = App::build(self.config.clone()).await.unwrap();
        let (address, metrics) = (app.address().to_owned(), app.metrics_address().unwrap());
        let drain = CancellationToken::new();
        let running = tokio::spawn(app.run(drain.clone()));
        Replica {
            address,
            metrics,
            drain,
            running,
        }
    }

    /// Starts a replica and waits until it leads.
    pub(crate) async fn leader(&self) -> Replica {
        let replica = self.replica().await;
        self.wait_for_leader(&replica.address).await;
        replica
    }

    pub(crate) async fn wait_for_leader(&self, address: &str) {
        let mut client = self.client(address);
        wait_for("a leader that serves", TIMEOUT, async || {
            client.stats(request(StatsRequest {}, TIMEOUT)).await.ok()
        })
        .await;
    }

    pub(crate) fn client(&self, address: &str) -> EvalBrokerClient<TracedChannel> {
        EvalBrokerClient::new(connect_lazy(address).unwrap())
    }

    pub(crate) async fn stats(&self, address: &str) -> StatsResponse {
        let mut client = self.client(address);
        client
            .stats(request(StatsRequest {}, TIMEOUT))
            .await
            .unwrap()
            .into_inner()
    }

    /// Opens a session with all types.
    pub(crate) async fn worker(&self, address: &str, credit: u32) -> Worker {
        self.try_worker(address, credit, &[]).await.unwrap()
    }

    pub(crate) async fn try_worker(
        &self,
        address: &str,
        credit: u32,
        types: &[&str],
    ) -> Result<Worker, Status> {
        let mut client = self.client(address);
        let (requests, outgoing) = mpsc::channel(16);
        let types = types.iter().map(|text| (*text).to_owned()).collect();
        let greeting = DequeueRequest {
            credit,
            types,
            worker: "test".to_owned(),
            acked: Vec::new(),
        };
        requests.try_send(greeting).unwrap();
        let opening = client.dequeue(ReceiverStream::new(outgoing));
        let deliveries = tokio::time::timeout(TIMEOUT, opening)
            .await
            .unwrap()?
            .into_inner();
        Ok(Worker {
            client,
            requests,
            deliveries,
        })
    }

    pub(crate) fn txn(&self) -> Txn {
        self.store.unfenced_writer().txn()
    }

    pub(crate) async fn commit(&self, txn: &Txn) -> u64 {
        match self.store.unfenced_writer().commit(txn).await.unwrap() {
            Commit::Done { revision } => revision,
            Commit::Conflict(conflict) => panic!("{conflict:?}"),
        }
    }

    pub(crate) async fn create_eval(&self, eval: &Evaluation) -> u64 {
        let mut txn = self.txn();
        txn.add(&writes::create(&Key::Eval(eval.id), eval)).unwrap();
        self.commit(&txn).await
    }

    pub(crate) async fn create_job(&self, job: &Job) {
        let mut txn = self.txn();
        txn.add(&writes::create(&Key::Job(job.key()), job)).unwrap();
        self.commit(&txn).await;
    }

    pub(crate) async fn create_node(&self, node: &Node) -> u64 {
        let mut txn = self.txn();
        txn.add(&writes::create(&Key::Node(node.id), node)).unwrap();
        self.commit(&txn).await
    }

    /// Stores the scheduler's configuration, with the broker paused or not.
    pub(crate) async fn pause(&self, pause_eval_broker: bool) {
        let config = SchedulerConfiguration {
            pause_eval_broker,
            ..SchedulerConfiguration::default()
        };
        let mut txn = self.txn();
        let key = Key::SchedulerConfig;
        match self.store.get(&key).await.unwrap() {
            Some(stored) => txn
                .add(&writes::update(&key, stored.mod_revision, &config))
                .unwrap(),
            None => txn.add(&writes::create(&key, &config)).unwrap(),
        };
        self.commit(&txn).await;
    }

    /// Writes the outcome of an evaluation, as the plan-applier does.
    pub(crate) async fn finish(&self, id: EvalId, change: impl FnOnce(&mut Evaluation)) -> u64 {
        let (mut eval, index) = self.eval(id).await;
        change(&mut eval);
        let mut txn = self.txn();
        txn.add(&writes::update(&Key::Eval(id), index, &eval))
            .unwrap();
        self.commit(&txn).await
    }

    /// Returns an evaluation as stored, with its modify index.
    pub(crate) async fn eval(&self, id: EvalId) -> (Evaluation, u64) {
        match self.store.get(&Key::Eval(id)).await.unwrap() {
            Some(Stored {
                entity: Entity::Eval(eval),
                mod_revision,
                ..
            }) => (*eval, mod_revision),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the address and the term of the leader.
    pub(crate) async fn elected(&self) -> Option<(String, u64)> {
        let key = Key::Election(SERVICE.to_owned());
        match self.store.get(&key).await.unwrap()? {
            Stored {
                entity: Entity::Election(info),
                create_revision,
                ..
            } => Some((info.address, create_revision)),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

/// One worker's session.
pub(crate) struct Worker {
    client: EvalBrokerClient<TracedChannel>,
    requests: mpsc::Sender<DequeueRequest>,
    deliveries: Streaming<Delivery>,
}

impl Worker {
    /// Waits for the next delivery.
    pub(crate) async fn next(&mut self) -> Delivery {
        self.try_next().await.expect("the session goes on")
    }

    /// Waits for the next delivery, or the end of the session.
    pub(crate) async fn try_next(&mut self) -> Option<Delivery> {
        let message = tokio::time::timeout(TIMEOUT, self.deliveries.message());
        message.await.expect("a delivery or an end").ok().flatten()
    }

    /// Tells whether nothing is delivered although the broker has looked at everything so far.
    pub(crate) async fn has_nothing(&mut self, suite: &Suite, address: &str) -> bool {
        // Answered by the loop after all that it was told before.
        suite.stats(address).await;
        let message = tokio::time::timeout(Duration::from_millis(1), self.deliveries.message());
        message.await.is_err()
    }

    pub(crate) async fn grant(&self, credit: u32) {
        let grant = DequeueRequest {
            credit,
            ..DequeueRequest::default()
        };
        self.requests.send(grant).await.unwrap();
    }

    /// Acks on the session.
    pub(crate) async fn ack_on_session(&self, deliveries: &[&Delivery]) {
        let acked = deliveries.iter().map(|delivery| AckRequest {
            eval_id: delivery.eval_id.clone(),
            token: delivery.token.clone(),
        });
        let message = DequeueRequest {
            acked: acked.collect(),
            ..DequeueRequest::default()
        };
        self.requests.send(message).await.unwrap();
    }

    pub(crate) async fn ack(&mut self, delivery: &Delivery) -> Result<(), Status> {
        let message = AckRequest {
            eval_id: delivery.eval_id.clone(),
            token: delivery.token.clone(),
        };
        self.client.ack(request(message, TIMEOUT)).await.map(drop)
    }

    pub(crate) async fn nack(&mut self, delivery: &Delivery) -> Result<(), Status> {
        let message = NackRequest {
            eval_id: delivery.eval_id.clone(),
            token: delivery.token.clone(),
            reason: "a test".to_owned(),
        };
        self.client.nack(request(message, TIMEOUT)).await.map(drop)
    }

    pub(crate) async fn extend(&mut self, delivery: &Delivery) -> Result<(), Status> {
        let message = ExtendRequest {
            eval_id: delivery.eval_id.clone(),
            token: delivery.token.clone(),
        };
        self.client
            .extend(request(message, TIMEOUT))
            .await
            .map(drop)
    }
}

pub(crate) fn id_of(delivery: &Delivery) -> EvalId {
    delivery.eval_id.parse().unwrap()
}

pub(crate) fn leader_hint(status: &Status) -> String {
    ErrorDetail::from_status(status)
        .unwrap_or_default()
        .leader_address
}
