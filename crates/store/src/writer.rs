//! Writers: commit transactions, with a leader's fence or without.

use std::time::Duration;

use etcd_client::{Compare as EtcdCompare, CompareOp, DeleteOptions, GetOptions, PutOptions};
use etcd_client::{TxnOp, TxnOpResponse, TxnResponse};
use futures::future::BoxFuture;
use state::Key;
use tokio::time::{Instant, timeout_at};

use crate::client::Client;
use crate::election::leadership::Leadership;
use crate::error::Error;
use crate::resolve::Resolution;
use crate::retry::Retry;
use crate::revision;
use crate::txn::{Compare, Expected, SizeClass, Txn};

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Everything was written, at this revision.
    Done { revision: u64 },
    /// Nothing was written: a compare failed.
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

/// The failed compares of a transaction that wrote nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The store's revision of the compares: a replica that has reached it shows the same state.
    pub revision: u64,
    /// The failed compares in the order of the transaction; never empty.
    pub failed: Vec<FailedCompare>,
}

impl Conflict {
    /// Returns whether a fence failed: its leader is deposed.
    pub fn is_fenced(&self) -> bool {
        self.failed
            .iter()
            .any(|failed| matches!(failed.expected, Expected::CreateRevision(_)))
    }
}

/// A failed compare and the actual state of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCompare {
    pub key: Key,
    pub expected: Expected,
    /// Both 0: the key does not exist.
    pub create_revision: u64,
    pub mod_revision: u64,
}

/// Commits transactions, with a fence that each must carry or without. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Writer {
    client: Client,
    leadership: Option<Leadership>,
}

impl Client {
    /// Returns a writer for services with many concurrent writers (the gateways): its transactions
    /// are guarded by their compares alone. A leader's writes go through [`Leadership::writer`].
    pub fn unfenced_writer(&self) -> Writer {
        Writer {
            client: self.clone(),
            leadership: None,
        }
    }
}

impl Leadership {
    /// Returns a writer whose every transaction carries this term's fence.
    pub fn writer(&self, client: &Client) -> Writer {
        Writer {
            client: client.clone(),
            leadership: Some(self.clone()),
        }
    }
}

impl Writer {
    /// Returns an empty transaction, with the leader's fence when this is a leader's writer.
    pub fn txn(&self) -> Txn {
        self.txn_with(SizeClass::New)
    }

    /// As [`Self::txn`], with the size limits of `class`.
    pub fn txn_with(&self, class: SizeClass) -> Txn {
        let limits = self.client.limits.with(class);
        let mut txn = Txn::new(self.client.keyspace.clone(), limits);
        if let Some(leadership) = &self.leadership {
            txn.fence(leadership.fence())
                .expect("an empty transaction has room for a fence");
        }
        txn
    }

    /// Commits a transaction, once. A leader whose fence fails has lost its leadership.
    ///
    /// # Errors
    /// [`Error::Unknown`] without an answer: call [`Self::resolve`], or use
    /// [`Self::commit_surely`] instead. Any other error: nothing was written.
    pub fn commit<'a>(&'a self, txn: &'a Txn) -> BoxFuture<'a, Result<Commit, Error>> {
        // Boxed here and below: the etcd client is compiled in this crate and not in every service.
        Box::pin(self.commit_within(txn, self.client.request_timeout))
    }

    async fn commit_within(&self, txn: &Txn, timeout: Duration) -> Result<Commit, Error> {
        self.check_fence(txn)?;
        let commit = send(&self.client, "commit a transaction", timeout, txn).await?;
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

    /// Commits a transaction with retries until `timeout`. The compares make retries safe: at
    /// most one attempt can succeed. A conflict after an attempt without an answer is resolved,
    /// because that attempt may have changed the keys.
    ///
    /// # Errors
    /// [`Error::Unknown`] when `timeout` ended first. Any other error: nothing was written.
    pub fn commit_surely<'a>(
        &'a self,
        txn: &'a Txn,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Commit, Error>> {
        Box::pin(self.commit_until_known(txn, timeout))
    }

    async fn commit_until_known(&self, txn: &Txn, timeout: Duration) -> Result<Commit, Error> {
        let give_up = Instant::now() + timeout;
        let mut retry = Retry::default();
        let mut in_doubt = false;
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            let attempt = self.commit_within(txn, left.min(self.client.request_timeout));
            let error = match attempt.await {
                Ok(Commit::Conflict(conflict)) if in_doubt => {
                    // An earlier attempt may have changed the keys.
                    match timeout_at(give_up, self.resolve(txn)).await {
                        Ok(Ok(Resolution::Applied { revision })) => {
                            return Ok(Commit::Done { revision });
                        }
                        Ok(Ok(Resolution::NotApplied)) => return Ok(Commit::Conflict(conflict)),
                        Ok(Ok(Resolution::Forgotten)) | Err(_) => return Err(outcome_unknown()),
                        Ok(Err(error)) => error,
                    }
                }
                Ok(commit) => return Ok(commit),
                Err(error) => error,
            };
            in_doubt |= error.is_unknown();
            let wait = retry.next_wait();
            if !error.is_retriable() || Instant::now() + wait >= give_up {
                return Err(if in_doubt { outcome_unknown() } else { error });
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Determines the outcome of a commit that ended in [`Error::Unknown`].
    ///
    /// # Errors
    /// etcd cannot be reached or does not answer in time: still unknown.
    pub fn resolve<'a>(&'a self, txn: &'a Txn) -> BoxFuture<'a, Result<Resolution, Error>> {
        Box::pin(crate::resolve::resolve(&self.client, txn))
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

fn outcome_unknown() -> Error {
    Error::Unknown {
        doing: "commit a transaction",
        source: None,
    }
}

/// Sends a transaction to etcd, once. Apart from [`Writer`], elections and registrations call this: their
/// keys are bound to a lease, which they give back when the outcome is unknown.
///
/// # Errors
/// [`Error::Unknown`] without an answer. Any other error: nothing was written.
pub(crate) async fn send(
    client: &Client,
    doing: &'static str,
    timeout: Duration,
    txn: &Txn,
) -> Result<Commit, Error> {
    let response = client
        .call_within(timeout, doing, || {
            let (mut kv, request) = (client.kv.clone(), to_etcd(txn));
            async move { kv.txn(request).await }
        })
        .await?;
    Ok(read_response(txn, &response))
}

fn to_etcd(txn: &Txn) -> etcd_client::Txn {
    let compares = txn.compares().iter().map(to_compare).collect::<Vec<_>>();
    let writes = txn.writes().iter().map(|write| match &write.value {
        Some(value) => {
            let options = (write.lease != 0).then(|| PutOptions::new().with_lease(write.lease));
            TxnOp::put(write.text.as_str(), value.as_slice(), options)
        }
        None => TxnOp::delete(write.text.as_str(), Some(DeleteOptions::new())),
    });
    // When a compare fails, every compared key is read, so that the response names the failed ones.
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

fn read_response(txn: &Txn, response: &TxnResponse) -> Commit {
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
