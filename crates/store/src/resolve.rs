//! Determines the outcome of a commit without an answer.
//!
//! A transaction leaves a unique trace: all its keys with its values, changed at one revision. That
//! revision is searched in the history of one of its keys, the witness, and then confirmed on the
//! others.

use etcd_client::{GetOptions, KeyValue, Txn as EtcdTxn, TxnOp, TxnOpResponse};
use state::Key;

use crate::client::Client;
use crate::error::Error;
use crate::revision;
use crate::txn::{EncodedWrite, Expected, Txn};

/// Number of versions of the witness that are read, newest first. A commit in doubt is seconds old,
/// and no key is written dozens of times within seconds.
const MAX_VERSIONS: usize = 64;
/// Keys per confirming read: below etcd's default limit of 128 operations, so that it works on a
/// server without configuration.
const CONFIRM_KEYS: usize = 100;

/// Outcome of a commit in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It was executed at this revision.
    Applied { revision: u64 },
    /// It was not executed so far, but its request may still reach etcd. Sending the SAME transaction
    /// again is safe: once one attempt has been executed, the compares of every other one fail. A different
    /// transaction is safe only if it compares one of the same keys.
    NotApplied,
    /// The trace is compacted, deleted, or too old.
    Forgotten,
}

pub(crate) async fn resolve(client: &Client, txn: &Txn) -> Result<Resolution, Error> {
    let Some(witness) = choose_witness(txn) else {
        // A transaction without writes has no trace and no effect.
        return Ok(Resolution::NotApplied);
    };
    match search(client, txn, witness).await {
        Err(Error::Compacted { .. }) => Ok(Resolution::Forgotten),
        result => result,
    }
}

/// Returns the write with the most conclusive trace.
///
/// An object with a random id is created by one transaction only, so it exists or not. Next come
/// other new keys, then changed ones, whose history has to be searched, and last deleted ones,
/// which leave no value.
fn choose_witness(txn: &Txn) -> Option<&EncodedWrite> {
    txn.writes()
        .iter()
        .min_by_key(|write| match (&write.value, write.expected) {
            (Some(_), Expected::Absent) if has_random_id(&write.key) => 0,
            (Some(_), Expected::Absent) => 1,
            (Some(_), _) => 2,
            (None, _) => 3,
        })
}

fn has_random_id(key: &Key) -> bool {
    matches!(key, Key::Eval(_) | Key::Alloc(_) | Key::Deployment(_))
}

async fn search(client: &Client, txn: &Txn, witness: &EncodedWrite) -> Result<Resolution, Error> {
    let read_before = match witness.expected {
        Expected::ModRevision(revision) => revision,
        Expected::Absent | Expected::CreateRevision(_) => 0,
    };
    let mut at = 0;
    for _ in 0..MAX_VERSIONS {
        let options = GetOptions::new().with_revision(revision::to_etcd(at));
        let response = client
            .range("look for a commit", &witness.text, options)
            .await?;
        let Some(kv) = response.kvs().first() else {
            return match (&witness.value, witness.expected) {
                (Some(_), Expected::Absent) => Ok(Resolution::NotApplied),
                // Changed by this transaction and then deleted, or only deleted: indistinguishable.
                (Some(_), _) => Ok(Resolution::Forgotten),
                // Deleted as intended, by this transaction or by another.
                (None, _) => {
                    let revision = crate::client::header_revision(&response);
                    resolve_deletions(client, txn, revision).await
                }
            };
        };
        let changed = revision::from_etcd(kv.mod_revision());
        if changed <= read_before {
            return Ok(Resolution::NotApplied);
        }
        if witness.value.as_deref() == Some(kv.value())
            && (witness.expected != Expected::Absent || kv.version() == 1)
            && confirm(client, txn, changed).await?
        {
            return Ok(Resolution::Applied { revision: changed });
        }
        if kv.version() == 1 {
            // Created by another writer after a deletion, before which the change may have happened.
            return Ok(Resolution::Forgotten);
        }
        at = changed - 1;
    }
    Ok(Resolution::Forgotten)
}

/// Returns the outcome of a transaction that only deletes, one key of which is absent as of
/// `revision`. It deletes all of its keys together, so one unchanged key disproves it.
async fn resolve_deletions(client: &Client, txn: &Txn, revision: u64) -> Result<Resolution, Error> {
    let mut all_gone = true;
    for writes in txn.writes().chunks(CONFIRM_KEYS) {
        let found = read_at(client, writes, revision).await?;
        for (write, kv) in writes.iter().zip(&found) {
            let Some(kv) = kv else { continue };
            let changed = revision::from_etcd(kv.mod_revision());
            if write.expected == Expected::ModRevision(changed) {
                return Ok(Resolution::NotApplied);
            }
            all_gone = false;
        }
    }
    Ok(if all_gone {
        Resolution::Applied { revision }
    } else {
        // Changed instead of deleted, or created again after the deletion: indistinguishable.
        Resolution::Forgotten
    })
}

/// Returns whether all of `txn` was executed at `revision`.
async fn confirm(client: &Client, txn: &Txn, revision: u64) -> Result<bool, Error> {
    for writes in txn.writes().chunks(CONFIRM_KEYS) {
        let found = read_at(client, writes, revision).await?;
        let mut pairs = writes.iter().zip(&found);
        if !pairs.all(|(write, kv)| matches(write, kv.as_ref(), revision)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the values at `revision` of the keys of at most [`CONFIRM_KEYS`] writes, in their order.
async fn read_at(
    client: &Client,
    writes: &[EncodedWrite],
    revision: u64,
) -> Result<Vec<Option<KeyValue>>, Error> {
    let options = GetOptions::new().with_revision(revision::to_etcd(revision));
    let reads = writes
        .iter()
        .map(|write| TxnOp::get(write.text.as_str(), Some(options.clone())))
        .collect::<Vec<_>>();
    let response = client
        .call("look for a commit", || {
            let (mut kv, request) = (client.kv.clone(), EtcdTxn::new().and_then(reads.clone()));
            async move { kv.txn(request).await }
        })
        .await?;
    let found = response.op_responses().into_iter().map(|read| match read {
        TxnOpResponse::Get(read) => read.kvs().first().cloned(),
        _ => None,
    });
    Ok(found.collect())
}

fn matches(write: &EncodedWrite, found: Option<&KeyValue>, revision: u64) -> bool {
    match (&write.value, found) {
        (None, None) => true,
        (Some(value), Some(kv)) => {
            kv.value() == value.as_slice() && revision::from_etcd(kv.mod_revision()) == revision
        }
        _ => false,
    }
}
