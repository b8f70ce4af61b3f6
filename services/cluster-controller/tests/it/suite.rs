//! A store, controllers over it, gateways that report to them, and nodes in the store.

use std::ops::Deref;
use std::time::Duration;

use cluster_controller::{App, Config, Error, SERVICE};
use model::{Evaluation, Job, Node, NodeId, NodeStatus};
use proto::internal::v1::liveness_client::LivenessClient;
use proto::internal::v1::{LivenessAck, NodesAlive};
use service_kit::{CancellationToken, connect_lazy};
use state::{Key, Snapshot};
use store_test_kit::ObservedStore;
use test_kit::builders::{allocation, node};
use test_kit::wait_for;
use test_kit::writes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Long enough for a loaded machine, short enough to notice.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Short, but far above the 20 ms between two reports, also on a loaded machine.
pub(crate) const TTL: Duration = Duration::from_millis(1_000);
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_millis(1_500);

/// One replica of the service, running until dropped.
pub(crate) struct Controller {
    pub(crate) address: String,
    metrics: std::net::SocketAddr,
    pub(crate) drain: CancellationToken,
    pub(crate) running: JoinHandle<Result<(), Error>>,
}

impl Controller {
    /// Returns what its metrics say.
    pub(crate) async fn metrics(&self) -> String {
        test_kit::scrape(self.metrics).await.unwrap()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.drain.cancel();
        self.running.abort();
    }
}

/// One store.
pub(crate) struct Suite {
    observed: ObservedStore,
    config: Config,
}

impl Deref for Suite {
    type Target = ObservedStore;

    fn deref(&self) -> &ObservedStore {
        &self.observed
    }
}

pub(crate) fn id(number: u128) -> NodeId {
    NodeId::from_random(number)
}

impl Suite {
    /// Controllers let nodes be silent for [`SILENCE_LIMIT`], and for [`TTL`] more after an
    /// election.
    pub(crate) async fn start() -> Self {
        let observed = ObservedStore::start().await;
        let mut config = Config {
            heartbeat_ttl: TTL,
            heartbeat_grace: SILENCE_LIMIT - TTL,
            tls: service_kit::TlsConfig::insecure(),
            ..Config::default()
        };
        config.etcd.endpoints = vec![observed.endpoint.clone()];
        Self { observed, config }
    }

    pub(crate) async fn controller(&self) -> Controller {
        self.controller_with(|_| {}).await
    }

    pub(crate) async fn controller_with(&self, edit: impl FnOnce(&mut Config)) -> Controller {
        let mut config = self.config.clone();
        edit(&mut config);
        let app = App::build(config).await.unwrap();
        let address = app.address().to_owned();
        let metrics = app.metrics_address().unwrap();
        let drain = CancellationToken::new();
        let running = tokio::spawn(app.run(drain.clone()));
        Controller {
            address,
            metrics,
            drain,
            running,
        }
    }

    /// Starts a controller and a gateway that reports to it.
    pub(crate) async fn led(&self) -> (Controller, Gateway) {
        let controller = self.controller().await;
        let gateway = self.gateway(&controller.address).await;
        (controller, gateway)
    }

    /// Connects a gateway as soon as the controller leads.
    pub(crate) async fn gateway(&self, address: &str) -> Gateway {
        wait_for("a leader that takes reports", TIMEOUT, async || {
            self.try_gateway(address).await.ok()
        })
        .await
    }

    pub(crate) async fn try_gateway(&self, address: &str) -> Result<Gateway, Status> {
        let mut client = LivenessClient::new(connect_lazy(address).unwrap());
        let (reports, outgoing) = mpsc::channel(16);
        let opening = client.report(ReceiverStream::new(outgoing));
        let acks = tokio::time::timeout(TIMEOUT, opening)
            .await
            .unwrap()?
            .into_inner();
        Ok(Gateway {
            reports,
            acks,
            sequence: 0,
        })
    }

    /// Waits until a node has a status, and returns the revision that gave it.
    pub(crate) async fn wait_for_status(&self, number: u128, status: NodeStatus) -> u64 {
        self.wait(status.as_str(), |snapshot| {
            let node = snapshot.node(id(number))?;
            (node.value.status == status).then_some(node.modify_index)
        })
        .await
    }

    /// Keeps reporting nodes until one of them (or another) has a status.
    pub(crate) async fn beat_until(
        &self,
        gateway: &mut Gateway,
        beating: &[u128],
        number: u128,
        status: NodeStatus,
    ) -> u64 {
        loop {
            gateway.hear(beating).await;
            let snapshot = self.seen();
            let node = snapshot
                .node(id(number))
                .filter(|node| node.value.status == status);
            if let Some(node) = node {
                return node.modify_index;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A node registers.
    pub(crate) async fn register(&self, number: u128, status: NodeStatus) -> u64 {
        let node = Node {
            status,
            ..node(number)
        };
        self.commit(|txn| {
            txn.add(&writes::create(&Key::Node(node.id), &node))
                .unwrap();
        })
        .await
    }

    /// Stores a job with one allocation on a node.
    pub(crate) async fn place(&self, job: &Job, node: u128) {
        let alloc = allocation(node, job, id(node));
        self.commit(|txn| {
            txn.add(&writes::create(&Key::Job(job.key()), job)).unwrap();
            txn.add(&writes::create(
                &Key::JobVersion(job.key(), job.version),
                job,
            ))
            .unwrap();
            txn.add(&writes::create(&Key::Alloc(alloc.id), &alloc))
                .unwrap();
        })
        .await;
    }

    pub(crate) async fn leader_term(&self) -> u64 {
        self.now()
            .await
            .leader(SERVICE)
            .expect("a leader")
            .create_index
    }
}

/// One gateway's stream of reports.
pub(crate) struct Gateway {
    reports: mpsc::Sender<NodesAlive>,
    acks: Streaming<LivenessAck>,
    sequence: u64,
}

impl Gateway {
    /// Reports that nodes were heard of, and waits until the leader has it.
    pub(crate) async fn hear(&mut self, numbers: &[u128]) {
        self.try_hear(numbers).await.expect("the stream goes on");
    }

    pub(crate) async fn try_hear(&mut self, numbers: &[u128]) -> Result<(), Status> {
        let node_ids = numbers
            .iter()
            .map(|number| id(*number).to_string())
            .collect();
        self.try_hear_texts(node_ids).await
    }

    /// Reports any text as ids.
    pub(crate) async fn hear_texts(&mut self, texts: &[String]) {
        self.try_hear_texts(texts.to_vec())
            .await
            .expect("the stream goes on");
    }

    async fn try_hear_texts(&mut self, node_ids: Vec<String>) -> Result<(), Status> {
        self.sequence += 1;
        let report = NodesAlive {
            gateway: "test".to_owned(),
            node_ids,
            sequence: self.sequence,
        };
        let ended = || Status::unavailable("the stream has ended");
        self.reports.send(report).await.map_err(|_| ended())?;
        let answer = tokio::time::timeout(TIMEOUT, self.acks.message()).await;
        let ack = answer.expect("an answer")?.ok_or_else(ended)?;
        assert_eq!(ack.sequence, self.sequence);
        Ok(())
    }
}

/// Returns the evaluations of a revision, ordered by job.
pub(crate) fn made_at(snapshot: &Snapshot, revision: u64) -> Vec<Evaluation> {
    let mut evals: Vec<Evaluation> = snapshot
        .evals()
        .filter(|eval| eval.create_index == revision)
        .map(|eval| eval.value.clone())
        .collect();
    evals.sort_by(|one, other| one.job.cmp(&other.job));
    evals
}
