//! A store, terms of leaders over it, and stores that refuse.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use embedded_etcd::EmbeddedEtcd;
use model::{Evaluation, Job, LeaderInfo, Node, Plan, Timestamp};
use prometheus_client::registry::Registry;
use service_kit::CancellationToken;
use state::{Key, Snapshot};
use store::{
    Client, ClientOptions, Commit, ElectionOptions, Leadership, Replica, ReplicaOptions, Txn,
    Writer,
};
use test_kit::builders;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::SERVICE;
use crate::commit::{Committer, Store};
use crate::metrics::Metrics;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const NOW: Timestamp = Timestamp(5);

/// A store, and a replica of it.
pub(crate) struct Ground {
    _etcd: EmbeddedEtcd,
    client: Client,
    pub(crate) replica: Replica,
}

/// What a store says to the transactions that reach it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Says {
    /// Takes every one.
    Yes,
    /// That it is too large, if it has more operations than that.
    AtMost(usize),
    /// As [`Self::AtMost`], and after so many that were taken, that another leads.
    DeposedAfter { taken: usize, at_most: usize },
    /// Refuses that many, after that many others.
    No { after: usize, times: usize },
}

/// A way into the store on which it refuses things.
#[derive(Clone)]
pub(crate) struct Strict {
    writer: Writer,
    says: Arc<Mutex<Says>>,
}

impl Strict {
    pub(crate) fn says(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }

    fn refusal(&self, txn: &Txn) -> Option<store::Error> {
        let service = SERVICE.to_owned();
        let doing = "commit a transaction";
        let reason = "etcdserver: too many operations in txn request".to_owned();
        let too_large = store::Error::LimitsTooLow { doing, reason };
        match &mut *self.says.lock().unwrap() {
            Says::Yes => None,
            Says::AtMost(most) => (txn.op_count() > *most).then_some(too_large),
            Says::DeposedAfter { taken: 0, .. } => Some(store::Error::Deposed { service }),
            Says::DeposedAfter { taken, at_most } => {
                let is_too_large = txn.op_count() > *at_most;
                *taken -= usize::from(!is_too_large);
                is_too_large.then_some(too_large)
            }
            Says::No { times: 0, .. } => None,
            Says::No { after: 0, times } => {
                *times -= 1;
                // Like everything of the kind: nothing was written, and asking again is no help.
                Some(store::Error::Unfenced { service })
            }
            Says::No { after, .. } => {
                *after -= 1;
                None
            }
        }
    }
}

impl Store for Strict {
    fn txn(&self) -> Txn {
        self.writer.txn()
    }

    async fn commit_surely(&self, txn: &Txn, patience: Duration) -> Result<Commit, store::Error> {
        match self.refusal(txn) {
            Some(refusal) => Err(refusal),
            None => self.writer.commit_surely(txn, patience).await,
        }
    }
}

/// A term; it is given up when this is dropped.
pub(crate) struct Term {
    pub(crate) committer: Committer<Strict>,
    drain: CancellationToken,
}

impl Drop for Term {
    fn drop(&mut self) {
        self.drain.cancel();
    }
}

impl Ground {
    pub(crate) async fn start() -> Self {
        let etcd = EmbeddedEtcd::start(embedded_etcd::Config::in_memory())
            .await
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(etcd.serve(listener, CancellationToken::new()));
        let client = Client::connect(&[endpoint], ClientOptions::default())
            .await
            .unwrap();
        let drain = CancellationToken::new();
        let replica = Replica::start(client.clone(), ReplicaOptions::default(), drain);
        Self {
            _etcd: etcd,
            client,
            replica,
        }
    }

    /// Writes nodes, a job, and an evaluation of it.
    pub(crate) async fn register(&self, job: &Job, nodes: &[Node]) -> Evaluation {
        let eval = builders::evaluation(1, job);
        let mut txn = self.txn();
        for node in nodes {
            txn.create(&Key::Node(node.id), node).unwrap();
        }
        txn.create(&Key::Job(job.key()), job).unwrap();
        txn.create(&Key::JobVersion(job.key(), 0), job).unwrap();
        txn.create(&Key::Eval(eval.id), &eval).unwrap();
        self.commit(&txn).await;
        eval
    }

    /// What a worker would propose for the evaluation, now.
    pub(crate) async fn plan(&self, eval: &Evaluation) -> Plan {
        let snapshot = self.now().await;
        let stored = snapshot.eval(eval.id).unwrap();
        scheduler::schedule(&snapshot, stored, NOW, 7).plan
    }

    pub(crate) fn txn(&self) -> Txn {
        self.client.unfenced_writer().txn()
    }

    pub(crate) async fn commit(&self, txn: &Txn) -> u64 {
        match self.client.unfenced_writer().commit(txn).await.unwrap() {
            Commit::Done { revision } => revision,
            Commit::Conflict(conflict) => panic!("{conflict:?}"),
        }
    }

    pub(crate) async fn now(&self) -> Snapshot {
        self.replica.linearizable(PATIENCE).await.unwrap()
    }

    /// Waits until nobody leads any more, and leads.
    pub(crate) async fn lead(&self) -> Term {
        let (tell, mut told) = mpsc::unbounded_channel::<Leadership>();
        let drain = CancellationToken::new();
        let info = LeaderInfo {
            address: "http://127.0.0.1:1".to_owned(),
            replica: "test".to_owned(),
        };
        let until = drain.clone();
        // The tests say when a term ends, not a machine that has much else to do.
        let options = ElectionOptions {
            ttl: PATIENCE * 3,
            ..ElectionOptions::new(SERVICE, info)
        };
        tokio::spawn(store::run_elected(
            options,
            self.replica.clone(),
            self.client.clone(),
            drain.clone(),
            move |leadership| {
                tell.send(leadership).unwrap();
                let until = until.clone();
                async move { until.cancelled().await }
            },
        ));
        let leadership = tokio::time::timeout(PATIENCE, told.recv()).await;
        let committer = Committer {
            writer: Strict {
                writer: leadership.unwrap().unwrap().writer(&self.client),
                says: Arc::new(Mutex::new(Says::Yes)),
            },
            replica: self.replica.clone(),
            metrics: Metrics::register(&mut Registry::default()),
            drain: CancellationToken::new(),
        };
        Term { committer, drain }
    }
}
