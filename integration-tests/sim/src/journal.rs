//! etcd's simulated disk: commits survive a crash, take a configurable time, and are shown to the
//! [`Checker`] revision by revision.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use embedded_etcd::Journal;
use embedded_etcd::error::Error;
use embedded_etcd::mvcc::NEVER_COMPACTED;
use embedded_etcd::record::{Record, Revision};
use embedded_etcd::storage::{Change, Contents};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::checker::Checker;

/// A disk. Cheap to clone; clones share the content.
#[derive(Clone)]
pub struct Disk {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    records: BTreeMap<Revision, Arc<Record>>,
    leases: BTreeMap<i64, i64>,
    compact_revision: i64,
    opened: u64,
    /// Longest duration of a commit, in milliseconds.
    slowness: u64,
    rng: StdRng,
    checker: Checker,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").finish_non_exhaustive()
    }
}

impl Disk {
    pub fn new(seed: u64, checker: Checker) -> Self {
        let inner = Inner {
            records: BTreeMap::new(),
            leases: BTreeMap::new(),
            compact_revision: NEVER_COMPACTED,
            opened: 0,
            slowness: 1,
            rng: StdRng::seed_from_u64(seed),
            checker,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Sets the longest duration of a commit, in milliseconds.
    pub fn set_slowness(&self, slowness: u64) {
        self.lock().slowness = slowness;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for Disk {
    fn open(&self) -> Contents {
        let mut inner = self.lock();
        inner.opened += 1;
        inner.checker.reopened();
        Contents {
            records: inner.records.values().map(|it| (**it).clone()).collect(),
            leases: inner.leases.iter().map(|(id, ttl)| (*id, *ttl)).collect(),
            compact_revision: inner.compact_revision,
            opened: inner.opened,
        }
    }

    fn note_writer(&self, peer: Option<SocketAddr>, revision: i64) {
        self.lock().checker.note_writer(peer, revision);
    }

    fn commit(&self, changes: Vec<Change>) -> connections::BoxFuture<Result<(), Error>> {
        let disk = self.clone();
        Box::pin(async move {
            let (before, after) = {
                let mut inner = disk.lock();
                let most = inner.slowness;
                let takes = inner.rng.random_range(0..=most);
                // The records are applied at a random point of the commit, so a crash may come before
                // or after it.
                let before = inner.rng.random_range(0..=takes);
                (before, takes - before)
            };
            wait(before).await;
            disk.lock().apply(changes);
            wait(after).await;
            Ok(())
        })
    }
}

async fn wait(millis: u64) {
    if millis > 0 {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

impl Inner {
    fn apply(&mut self, changes: Vec<Change>) {
        let mut written = BTreeMap::<i64, Vec<Arc<Record>>>::new();
        for change in changes {
            match change {
                Change::Write(record) => {
                    let revision = record.revision;
                    written
                        .entry(revision.main)
                        .or_default()
                        .push(Arc::clone(&record));
                    self.records.insert(revision, record);
                }
                Change::Compact { revision } => self.compact_revision = revision,
                Change::Drop(revision) => drop(self.records.remove(&revision)),
                Change::Grant { id, ttl } => drop(self.leases.insert(id, ttl)),
                Change::Revoke { id } => drop(self.leases.remove(&id)),
            }
        }
        for (revision, records) in written {
            self.checker.see(revision, &records);
        }
    }
}
