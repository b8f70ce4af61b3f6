//! A store with a writer and an observer, for tests of the services over it.

use std::time::Duration;

use state::Snapshot;
use store::{Client, Commit, Replica, ReplicaOptions, Txn};
use test_kit::wait_for;
use tokio_util::sync::CancellationToken;

use crate::TestStore;

/// Long enough for a loaded machine, short enough to notice.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A store that a test writes to beside the service, and watches.
#[derive(Debug)]
pub struct ObservedStore {
    pub store: Client,
    pub endpoint: String,
    replica: Replica,
    stop: CancellationToken,
    _etcd: TestStore,
}

impl Drop for ObservedStore {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ObservedStore {
    /// Starts a store in memory.
    ///
    /// # Panics
    /// No loopback port is free.
    pub async fn start() -> Self {
        let etcd = TestStore::start().await;
        let (endpoint, store) = (etcd.endpoint.clone(), etcd.client().await);
        let stop = CancellationToken::new();
        let replica = Replica::start(store.clone(), ReplicaOptions::default(), stop.clone());
        Self {
            store,
            endpoint,
            replica,
            stop,
            _etcd: etcd,
        }
    }

    /// Returns the newest state that the observer has seen.
    pub fn seen(&self) -> Snapshot {
        self.replica.snapshot()
    }

    /// Waits until the store shows something.
    ///
    /// # Panics
    /// It does not.
    pub async fn wait<T>(&self, what: &str, mut look: impl FnMut(&Snapshot) -> Option<T>) -> T {
        wait_for(what, TIMEOUT, async || look(&self.seen())).await
    }

    /// Returns the state as of now.
    ///
    /// # Panics
    /// The store does not answer.
    pub async fn now(&self) -> Snapshot {
        self.replica
            .linearizable(TIMEOUT)
            .await
            .expect("the store answers")
    }

    /// Commits a transaction, and returns its revision.
    ///
    /// # Panics
    /// A compare fails.
    pub async fn commit(&self, build: impl FnOnce(&mut Txn)) -> u64 {
        match self.outcome(build).await {
            Commit::Done { revision } => revision,
            Commit::Conflict(conflict) => panic!("{conflict:?}"),
        }
    }

    /// Commits a transaction that may have been overtaken; returns false if it was.
    ///
    /// # Panics
    /// The store does not answer.
    pub async fn try_commit(&self, build: impl FnOnce(&mut Txn)) -> bool {
        matches!(self.outcome(build).await, Commit::Done { .. })
    }

    async fn outcome(&self, build: impl FnOnce(&mut Txn)) -> Commit {
        let writer = self.store.unfenced_writer();
        let mut txn = writer.txn();
        build(&mut txn);
        writer.commit(&txn).await.expect("the store answers")
    }
}
