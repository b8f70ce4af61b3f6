//! Finds out what became of a commit whose answer never came.
//!
//! A transaction leaves a trace that only it can leave: all its keys with its values, changed at
//! one revision. That revision is looked for in the history of one of its keys, the witness, and
//! then confirmed on the others.

use etcd_client::{GetOptions, KeyValue, Txn as EtcdTxn, TxnOp, TxnOpResponse};
use state::Key;

use crate::client::Client;
use crate::error::Error;
use crate::revision;
use crate::txn::{Expected, Txn, Write};

/// How many versions of the witness are looked at, newest first. What is in doubt is seconds old,
/// and no key of ours is written dozens of times within seconds.
const MAX_VERSIONS: usize = 64;
/// How many keys one confirming read asks for: below etcd's own limit of 128 operations, so that
/// it works on a server that nobody has configured.
const CONFIRM_KEYS: usize = 100;

/// What became of a commit in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It was carried out, at this revision.
    Applied { revision: u64 },
    /// It was not, so far. The request may still be under way: committing the SAME transaction
    /// again is safe, because its compares let only one attempt through; doing something else
    /// instead is safe only when that compares one of the same keys.
    NotApplied,
    /// What would tell is compacted away, deleted, or too long ago.
    Forgotten,
}

pub(crate) async fn resolve(client: &Client, txn: &Txn) -> Result<Resolution, Error> {
    let Some(witness) = choose_witness(txn) else {
        // It would have changed nothing, so nothing became of it.
        return Ok(Resolution::NotApplied);
    };
    match search(client, txn, witness).await {
        Err(Error::Compacted { .. }) => Ok(Resolution::Forgotten),
        result => result,
    }
}

/// Returns the write whose trace says most.
///
/// An object with a random id is created by one transaction only, so it is there or not. Next come
/// other new keys, then changed ones, whose history is to be searched, and last deleted ones,
/// which leave nothing to look at.
fn choose_witness(txn: &Txn) -> Option<&Write> {
    txn.writes()
        .iter()
        .min_by_key(|write| match (&write.value, write.expected) {
            (Some(_), Expected::Absent) if is_drawn_at_random(&write.key) => 0,
            (Some(_), Expected::Absent) => 1,
            (Some(_), _) => 2,
            (None, _) => 3,
        })
}

fn is_drawn_at_random(key: &Key) -> bool {
    matches!(key, Key::Eval(_) | Key::Alloc(_) | Key::Deployment(_))
}

async fn search(client: &Client, txn: &Txn, witness: &Write) -> Result<Resolution, Error> {
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
                // Changed by us and then deleted, or only deleted: nothing is left to tell.
                (Some(_), _) => Ok(Resolution::Forgotten),
                // Gone, as was wanted, by whoever's hand.
                (None, _) => {
                    let revision = crate::client::header_revision(&response);
                    look_at_deletions(client, txn, revision).await
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
            // Created by another hand, after a deletion that may have had our change before it.
            return Ok(Resolution::Forgotten);
        }
        at = changed - 1;
    }
    Ok(Resolution::Forgotten)
}

/// Tells what became of a transaction that only deletes, and of which one key is gone as of
/// `revision`. All of them go together, so one that stands as it was read says that they did not.
async fn look_at_deletions(client: &Client, txn: &Txn, revision: u64) -> Result<Resolution, Error> {
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
        // Changed instead of deleted, or created anew after that: by then, nothing tells.
        Resolution::Forgotten
    })
}

/// Tells whether all of `txn` was carried out at `revision`.
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

/// Returns what the keys of at most [`CONFIRM_KEYS`] writes held at `revision`, in their order.
async fn read_at(
    client: &Client,
    writes: &[Write],
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

fn matches(write: &Write, found: Option<&KeyValue>, revision: u64) -> bool {
    match (&write.value, found) {
        (None, None) => true,
        (Some(value), Some(kv)) => {
            kv.value() == value.as_slice() && revision::from_etcd(kv.mod_revision()) == revision
        }
        _ => false,
    }
}
