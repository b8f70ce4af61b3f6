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
            return Ok(match (&witness.value, witness.expected) {
                (Some(_), Expected::Absent) => Resolution::NotApplied,
                // Changed by us and then deleted, or only deleted: nothing is left to tell.
                (Some(_), _) => Resolution::Forgotten,
                // Gone, as was wanted.
                (None, _) => Resolution::Applied {
                    revision: crate::client::header_revision(&response),
                },
            });
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

/// Tells whether all of `txn` was carried out at `revision`.
async fn confirm(client: &Client, txn: &Txn, revision: u64) -> Result<bool, Error> {
    for writes in txn.writes().chunks(CONFIRM_KEYS) {
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
        for (write, read) in writes.iter().zip(response.op_responses()) {
            let TxnOpResponse::Get(read) = read else {
                return Ok(false);
            };
            if !matches(write, read.kvs().first(), revision) {
                return Ok(false);
            }
        }
    }
    Ok(true)
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
