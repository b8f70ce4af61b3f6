//! Evaluation of a txn's compares: the branches that it takes.

use std::cmp::Ordering;

use etcd_client::proto::{PbCompare, PbCompareTarget, PbTargetUnion, PbTxnOpRequest, PbTxnRequest};

use crate::{key_range::KeyRange, mvcc::Mvcc, record::Record};

/// etcd's `Compare.CompareResult`, which the client crate does not export.
const EQUAL: i32 = 0;
const GREATER: i32 = 1;
const LESS: i32 = 2;
const NOT_EQUAL: i32 = 3;

/// The branches that a txn takes, its own first, then those of the nested txns in that branch, each
/// followed by its own nested ones.
///
/// All are decided before anything is written, at `revision`, the newest there is.
pub(super) fn branches(mvcc: &Mvcc, request: &PbTxnRequest, revision: i64) -> Vec<bool> {
    let mut taken = Vec::new();
    decide(mvcc, request, revision, &mut taken);
    taken
}

fn decide(mvcc: &Mvcc, request: &PbTxnRequest, revision: i64, taken: &mut Vec<bool>) {
    let succeeded = request
        .compare
        .iter()
        .all(|compare| holds(mvcc, compare, revision));
    taken.push(succeeded);
    let ops = if succeeded {
        &request.success
    } else {
        &request.failure
    };
    for op in ops {
        if let Some(PbTxnOpRequest::RequestTxn(nested)) = &op.request {
            decide(mvcc, nested, revision, taken);
        }
    }
}

/// Returns true if `compare` holds for every key it names; for a range without keys, if it would
/// hold for a key that does not exist.
fn holds(mvcc: &Mvcc, compare: &PbCompare, revision: i64) -> bool {
    let range = KeyRange::new(compare.key.clone(), compare.range_end.clone());
    mvcc.all(&range, revision, |record| match record {
        // No value can stand for a missing one.
        None if compare.target == PbCompareTarget::Value as i32 => false,
        None => holds_of(compare, &Facts::default()),
        Some(record) => holds_of(compare, &Facts::of(record)),
    })
}

/// The comparable facts of a key; all zero for a key that does not exist.
#[derive(Default)]
struct Facts<'a> {
    version: i64,
    create_revision: i64,
    mod_revision: i64,
    lease: i64,
    value: &'a [u8],
}

impl<'a> Facts<'a> {
    fn of(record: &'a Record) -> Self {
        Self {
            version: record.version,
            create_revision: record.create_revision,
            mod_revision: record.revision.main,
            lease: record.lease,
            value: &record.value,
        }
    }
}

fn holds_of(compare: &PbCompare, facts: &Facts<'_>) -> bool {
    let ordering = order(compare, facts);
    match compare.result {
        EQUAL => ordering == Ordering::Equal,
        GREATER => ordering == Ordering::Greater,
        LESS => ordering == Ordering::Less,
        NOT_EQUAL => ordering != Ordering::Equal,
        _ => true,
    }
}

/// Compares the fact with the operand; an operand of another kind than the target counts as zero.
fn order(compare: &PbCompare, facts: &Facts<'_>) -> Ordering {
    let given = compare.target_union.as_ref();
    match PbCompareTarget::try_from(compare.target) {
        Ok(PbCompareTarget::Version) => facts.version.cmp(&match given {
            Some(PbTargetUnion::Version(version)) => *version,
            _ => 0,
        }),
        Ok(PbCompareTarget::Create) => facts.create_revision.cmp(&match given {
            Some(PbTargetUnion::CreateRevision(revision)) => *revision,
            _ => 0,
        }),
        Ok(PbCompareTarget::Mod) => facts.mod_revision.cmp(&match given {
            Some(PbTargetUnion::ModRevision(revision)) => *revision,
            _ => 0,
        }),
        Ok(PbCompareTarget::Lease) => facts.lease.cmp(&match given {
            Some(PbTargetUnion::Lease(lease)) => *lease,
            _ => 0,
        }),
        Ok(PbCompareTarget::Value) => facts.value.cmp(match given {
            Some(PbTargetUnion::Value(value)) => value.as_slice(),
            _ => &[],
        }),
        Err(_) => Ordering::Equal,
    }
}
