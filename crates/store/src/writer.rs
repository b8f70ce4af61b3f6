//! Commits transactions, for a leader or for one of many.

use std::time::Duration;

use etcd_client::{Compare as EtcdCompare, CompareOp, DeleteOptions, GetOptions, PutOptions};
use etcd_client::{TxnOp, TxnOpResponse, TxnResponse};
use state::Key;
use tokio::time::{Instant, timeout_at};

use crate::client::Client;
use crate::election::Leadership;
use crate::error::Error;
use crate::resolve::Resolution;
use crate::retry::Retry;
use crate::revision;
use crate::txn::{Compare, Expected, Room, Txn};

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Everything was written, at this revision.
    Done { revision: u64 },
    /// Nothing was written: something was not as expected.
    Conflict(Conflict),
}

impl Commit {
    /// Returns the revision of the commit; `None` when there was a conflict.
    pub fn revision(&self) -> Option<u64> {
        match self {
            Self::Done { revision } => Some(*revision),
            Self::Conflict(_) => None,
        }
    }
}

/// Why a transaction wrote nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The store's revision when it was looked at: a replica that has reached it shows the same.
    pub revision: u64,
    /// What was not as expected, in the order it was required; never empty.
    pub failed: Vec<FailedCompare>,
}

impl Conflict {
    /// Tells whether a fence failed: the leader whose it was is deposed.
    pub fn is_fenced(&self) -> bool {
        self.failed
            .iter()
            .any(|failed| matches!(failed.expected, Expected::CreateRevision(_)))
    }
}

/// One key that was not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCompare {
    pub key: Key,
    pub expected: Expected,
    /// Both 0: the key does not exist.
    pub create_revision: u64,
    pub mod_revision: u64,
}

/// The way to write: with a fence that every transaction must carry, or without. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Writer {
    client: Client,
    leadership: Option<Leadership>,
}

impl Writer {
    pub(crate) fn unfenced(client: Client) -> Self {
        Self {
            client,
            leadership: None,
        }
    }

    pub(crate) fn fenced(client: Client, leadership: Leadership) -> Self {
        Self {
            client,
            leadership: Some(leadership),
        }
    }

    /// Returns an empty transaction, with the leader's fence when this is a leader's writer.
    pub fn txn(&self) -> Txn {
        self.txn_with(Room::New)
    }

    /// Returns an empty transaction as [`Self::txn`] does, which may be as large as `room` says.
    pub fn txn_with(&self, room: Room) -> Txn {
        let limits = self.client.limits.with(room);
        let mut txn = Txn::new(self.client.keyspace.clone(), limits);
        if let Some(leadership) = &self.leadership {
            txn.fence(leadership.fence())
                .expect("an empty transaction has room for a fence");
        }
        txn
    }

    /// Carries out a transaction, once. A leader whose fence fails has lost its leadership.
    ///
    /// # Errors
    /// [`Error::Unknown`] when the answer never came: ask [`Self::resolve`], or call
    /// [`Self::commit_surely`] in the first place. Any other error: nothing was written.
    pub async fn commit(&self, txn: &Txn) -> Result<Commit, Error> {
        self.commit_within(txn, self.client.request_timeout).await
    }

    async fn commit_within(&self, txn: &Txn, patience: Duration) -> Result<Commit, Error> {
        self.check_fence(txn)?;
        let response = self
            .client
            .call_within(patience, "commit a transaction", || {
                let (mut kv, request) = (self.client.kv.clone(), to_etcd(txn));
                async move { kv.txn(request).await }
            })
            .await?;
        let commit = read_response(txn, &response);
        if let (Commit::Conflict(conflict), Some(leadership)) = (&commit, &self.leadership)
            && conflict
                .failed
                .iter()
                .any(|failed| failed.key == leadership.fence().key())
        {
            leadership.lose();
        }
        Ok(commit)
    }

    /// Carries out a transaction and, when the answer does not come, finds out what happened;
    /// tries again for as long as `patience` lasts. Compares make that safe: at most one attempt
    /// can succeed.
    ///
    /// # Errors
    /// [`Error::Unknown`] when `patience` ended first. Any other error: nothing was written.
    pub async fn commit_surely(&self, txn: &Txn, patience: Duration) -> Result<Commit, Error> {
        let give_up = Instant::now() + patience;
        let mut retry = Retry::default();
        let mut in_doubt = false;
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            let attempt = self.commit_within(txn, left.min(self.client.request_timeout));
            let error = match attempt.await {
                Ok(Commit::Conflict(conflict)) if in_doubt => {
                    // An earlier attempt may be what changed the keys.
                    match timeout_at(give_up, self.resolve(txn)).await {
                        Ok(Ok(Resolution::Applied { revision })) => {
                            return Ok(Commit::Done { revision });
                        }
                        Ok(Ok(Resolution::NotApplied)) => return Ok(Commit::Conflict(conflict)),
                        Ok(Ok(Resolution::Forgotten)) | Err(_) => return Err(in_the_dark()),
                        Ok(Err(error)) => error,
                    }
                }
                Ok(commit) => return Ok(commit),
                Err(error) => error,
            };
            in_doubt |= error.is_unknown();
            let wait = retry.next_wait();
            if !error.is_retriable() || Instant::now() + wait >= give_up {
                return Err(if in_doubt { in_the_dark() } else { error });
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Finds out what became of a commit that ended in [`Error::Unknown`].
    ///
    /// # Errors
    /// etcd cannot be reached or does not answer in time: still unknown.
    pub async fn resolve(&self, txn: &Txn) -> Result<Resolution, Error> {
        crate::resolve::resolve(&self.client, txn).await
    }

    fn check_fence(&self, txn: &Txn) -> Result<(), Error> {
        let Some(leadership) = &self.leadership else {
            return Ok(());
        };
        let service = || leadership.fence().service.clone();
        if !txn.carries(leadership.fence()) {
            return Err(Error::Unfenced { service: service() });
        }
        if !leadership.is_current() {
            return Err(Error::Deposed { service: service() });
        }
        Ok(())
    }
}

fn in_the_dark() -> Error {
    Error::Unknown {
        doing: "commit a transaction",
        source: None,
    }
}

pub(crate) fn to_etcd(txn: &Txn) -> etcd_client::Txn {
    let compares = txn.compares().iter().map(to_compare).collect::<Vec<_>>();
    let writes = txn.writes().iter().map(|write| match &write.value {
        Some(value) => {
            let options = (write.lease != 0).then(|| PutOptions::new().with_lease(write.lease));
            TxnOp::put(write.text.as_str(), value.as_slice(), options)
        }
        None => TxnOp::delete(write.text.as_str(), Some(DeleteOptions::new())),
    });
    // When a compare fails, every compared key is read, so that the answer says which.
    let reads = txn.compares().iter().map(|compare| {
        TxnOp::get(
            compare.text.as_str(),
            Some(GetOptions::new().with_keys_only()),
        )
    });
    etcd_client::Txn::new()
        .when(compares)
        .and_then(writes.collect::<Vec<_>>())
        .or_else(reads.collect::<Vec<_>>())
}

fn to_compare(compare: &Compare) -> EtcdCompare {
    let key = compare.text.as_str();
    match compare.expected {
        Expected::Absent => EtcdCompare::create_revision(key, CompareOp::Equal, 0),
        Expected::ModRevision(revision) => {
            EtcdCompare::mod_revision(key, CompareOp::Equal, revision::to_etcd(revision))
        }
        Expected::CreateRevision(revision) => {
            EtcdCompare::create_revision(key, CompareOp::Equal, revision::to_etcd(revision))
        }
    }
}

pub(crate) fn read_response(txn: &Txn, response: &TxnResponse) -> Commit {
    let revision = response
        .header()
        .map_or(0, |header| revision::from_etcd(header.revision()));
    if response.succeeded() {
        return Commit::Done { revision };
    }
    let mut failed = Vec::new();
    for (compare, read) in txn.compares().iter().zip(response.op_responses()) {
        let TxnOpResponse::Get(read) = read else {
            continue;
        };
        let kv = read.kvs().first();
        let create_revision = kv.map_or(0, |kv| revision::from_etcd(kv.create_revision()));
        let mod_revision = kv.map_or(0, |kv| revision::from_etcd(kv.mod_revision()));
        let holds = match compare.expected {
            Expected::Absent => create_revision == 0,
            Expected::ModRevision(expected) => mod_revision == expected,
            Expected::CreateRevision(expected) => create_revision == expected,
        };
        if !holds {
            let (key, expected) = (compare.key.clone(), compare.expected);
            failed.push(FailedCompare {
                key,
                expected,
                create_revision,
                mod_revision,
            });
        }
    }
    Commit::Conflict(Conflict { revision, failed })
}
