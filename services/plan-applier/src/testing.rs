//! Test support: an embedded store, terms of leadership over it, and refusals by the store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::{Evaluation, Job, LeaderInfo, Node, Plan, Timestamp};
use prometheus_client::registry::Registry;
use service_kit::CancellationToken;
use state::{Key, Snapshot};
use store::{
    Client, Commit, CommitOutcome, ElectionOptions, Leadership, Replica, ReplicaOptions, Txn,
    Writer,
};
use store_test_kit::TestStore;
use test_kit::builders;
use test_kit::writes;
use tokio::sync::mpsc;

use crate::SERVICE;
use crate::commit::{Committer, Store};
use crate::metrics::Metrics;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
pub(crate) const NOW: Timestamp = Timestamp(5);

/// A store, and a replica of it.
pub(crate) struct StoreFixture {
    _etcd: TestStore,
    client: Client,
    pub(crate) replica: Replica,
}

/// The store's refusals of transactions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusals {
    /// None.
    Yes,
    /// Too large, with more operations than this.
    AtMost(usize),
    /// As [`Self::AtMost`]; after so many accepted ones, deposed.
    DeposedAfter { taken: usize, at_most: usize },
    /// Refuses `times` transactions after `after` others.
    No { after: usize, times: usize },
}

/// A writer whose store refuses transactions.
#[derive(Clone)]
pub(crate) struct RefusingStore {
    writer: Writer,
    refusals: Arc<Mutex<Refusals>>,
}

impl RefusingStore {
    pub(crate) fn set_refusals(&self, refusals: Refusals) {
        *self.refusals.lock().unwrap() = refusals;
    }

    fn refusal(&self, txn: &Txn) -> Option<store::Error> {
        let service = SERVICE.to_owned();
        let doing = "commit a transaction";
        let reason = "etcdserver: too many operations in txn request".to_owned();
        let too_large = store::Error::LimitsTooLow { doing, reason };
        match &mut *self.refusals.lock().unwrap() {
            Refusals::Yes => None,
            Refusals::AtMost(most) => (txn.op_count() > *most).then_some(too_large),
            Refusals::DeposedAfter { taken: 0, .. } => Some(store::Error::Deposed { service }),
            Refusals::DeposedAfter { taken, at_most } => {
                let is_too_large = txn.op_count() > *at_most;
                *taken -= usize::from(!is_too_large);
                is_too_large.then_some(too_large)
            }
            Refusals::No { times: 0, .. } => None,
            Refusals::No { after: 0, times } => {
                *times -= 1;
                // Any error of this kind: nothing was written, and a retry fails again.
                Some(store::Error::Unfenced { service })
            }
            Refusals::No { after, .. } => {
                *after -= 1;
                None
            }
        }
    }
}

impl Store for RefusingStore {
    fn txn(&self) -> Txn {
        self.writer.txn()
    }

    async fn perform_txn(&self, txn: &Txn, timeout: Duration) -> CommitOutcome {
        match self.refusal(txn) {
            Some(refusal) => CommitOutcome::of(Err(refusal)),
            None => self.writer.perform_txn(txn, timeout).await,
        }
    }
}

/// A term, which ends on drop.
pub(crate) struct Term {
    pub(crate) committer: Committer<RefusingStore>,
    drain: CancellationToken,
}

impl Drop for Term {
    fn drop(&mut self) {
        self.drain.cancel();
    }
}

impl StoreFixture {
    pub(crate) async fn start() -> Self {
        let etcd = TestStore::start().await;
        let client = etcd.client().await;
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
            txn.add(&writes::create(&Key::Node(node.id), node)).unwrap();
        }
        txn.add(&writes::create(&Key::Job(job.key()), job)).unwrap();
        txn.add(&writes::create(&Key::JobVersion(job.key(), 0), job))
            .unwrap();
        txn.add(&writes::create(&Key::Eval(eval.id), &eval))
            .unwrap();
        self.commit(&txn).await;
        eval
    }

    /// Returns a worker's plan for the evaluation on the newest state.
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
        self.replica.linearizable(TIMEOUT).await.unwrap()
    }

    /// Waits for the end of the current term, and leads.
    pub(crate) async fn lead(&self) -> Term {
        let (tell, mut elected) = mpsc::unbounded_channel::<Leadership>();
        let drain = CancellationToken::new();
        let info = LeaderInfo {
            address: "http://127.0.0.1:1".to_owned(),
            replica: "test".to_owned(),
        };
        let until = drain.clone();
        // Long, so that only the tests end a term, not the load of the machine.
        let options = ElectionOptions {
            ttl: TIMEOUT * 3,
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
        let leadership = tokio::time::timeout(TIMEOUT, elected.recv()).await;
        let committer = Committer {
            writer: RefusingStore {
                writer: leadership.unwrap().unwrap().writer(&self.client),
                refusals: Arc::new(Mutex::new(Refusals::Yes)),
            },
            replica: self.replica.clone(),
            metrics: Metrics::register(&mut Registry::default()),
            drain: CancellationToken::new(),
        };
        Term { committer, drain }
    }
}
