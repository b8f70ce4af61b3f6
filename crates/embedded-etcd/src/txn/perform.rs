//! Execution of puts, deletes and txns, with etcd's responses.

use bytes::Bytes;
use etcd_client::proto::{
    PbDeleteRequest, PbDeleteResponse, PbPutRequest, PbPutResponse, PbResponseHeader, PbResponseOp,
    PbTxnOpRequest, PbTxnOpResponse, PbTxnRequest, PbTxnRequestOp, PbTxnResponse,
};

use super::{compare, range_request::answer_range};
use crate::{
    error::ApiError,
    key_range::KeyRange,
    lease::LeaseTable,
    mvcc::{Mvcc, RangeOptions, WriteTxn},
};

/// The header inside an answer: of it, only the revision is filled.
fn revision_only(revision: i64) -> Option<PbResponseHeader> {
    Some(PbResponseHeader {
        revision,
        ..PbResponseHeader::default()
    })
}

/// Puts one key. That its lease exists has been checked.
///
/// # Errors
/// [`ApiError::KeyNotFound`] if the request keeps a value or lease of the old version, and there is
/// none.
pub(crate) fn put(
    write: &mut WriteTxn<'_>,
    request: PbPutRequest,
) -> Result<PbPutResponse, ApiError> {
    let keeps = request.ignore_value || request.ignore_lease;
    let previous = if keeps || request.prev_kv {
        write.get(&request.key).cloned()
    } else {
        None
    };
    let (mut value, mut lease) = (Bytes::from(request.value), request.lease);
    if keeps {
        let previous = previous.as_ref().ok_or(ApiError::KeyNotFound)?;
        if request.ignore_value {
            value = previous.value.clone();
        }
        if request.ignore_lease {
            lease = previous.lease;
        }
    }
    let revision = write.put(Bytes::from(request.key), value, lease);
    let prev_kv = previous
        .filter(|_| request.prev_kv)
        .map(|previous| previous.to_key_value(false));
    Ok(PbPutResponse {
        header: revision_only(revision),
        prev_kv,
    })
}

/// Deletes a range.
///
/// # Errors
/// None today; the read of the deleted keys shares its signature with other reads.
pub(crate) fn delete_range(
    write: &mut WriteTxn<'_>,
    request: PbDeleteRequest,
) -> Result<PbDeleteResponse, ApiError> {
    let range = KeyRange::new(request.key, request.range_end);
    let prev_kvs = if request.prev_kv {
        let found = write.range(&range, RangeOptions::default())?;
        found
            .records
            .iter()
            .map(|record| record.to_key_value(false))
            .collect()
    } else {
        Vec::new()
    };
    let deleted = write.delete_range(&range);
    Ok(PbDeleteResponse {
        header: revision_only(write.current()),
        deleted,
        prev_kvs,
    })
}

/// Returns true if a txn writes nothing in any branch; a nested txn counts as a write.
pub(crate) fn read_only(request: &PbTxnRequest) -> bool {
    request
        .success
        .iter()
        .chain(&request.failure)
        .all(|op| matches!(op.request, Some(PbTxnOpRequest::RequestRange(_))))
}

/// Decides and executes a txn that has passed [`super::check::txn`]. On an error the caller
/// rolls `write` back.
///
/// # Errors
/// [`ApiError::KeyNotFound`], [`ApiError::LeaseNotFound`], [`ApiError::FutureRevision`],
/// [`ApiError::Compacted`].
pub(crate) fn perform(
    mvcc: &mut Mvcc,
    leases: &LeaseTable,
    request: PbTxnRequest,
) -> Result<(PbTxnResponse, crate::mvcc::Committed), ApiError> {
    let head = mvcc.head();
    let branches = compare::branches(mvcc, &request, head);
    // All puts are checked before the first range, because the order decides which error is returned.
    check_operations(&request, &branches, &mut |op| {
        check_put(mvcc, leases, op, head)
    })?;
    check_operations(&request, &branches, &mut |op| check_range(mvcc, op, head))?;

    let mut write = mvcc.write();
    match run(&mut write, request, &mut branches.into_iter()) {
        Ok(mut response) => {
            let committed = write.finish();
            response.header = revision_only(committed.revision);
            Ok((response, committed))
        }
        Err(error) => {
            write.roll_back();
            Err(error)
        }
    }
}

/// Decides and answers a [`read_only`] txn at the revision that readers see.
///
/// # Errors
/// [`ApiError::FutureRevision`], [`ApiError::Compacted`].
pub(crate) fn perform_read_only(
    mvcc: &Mvcc,
    request: PbTxnRequest,
) -> Result<PbTxnResponse, ApiError> {
    let current = mvcc.visible();
    let branches = compare::branches(mvcc, &request, current);
    check_operations(&request, &branches, &mut |op| {
        check_range(mvcc, op, current)
    })?;
    let succeeded = branches.first().copied().unwrap_or(true);
    let ops = if succeeded {
        request.success
    } else {
        request.failure
    };
    let mut responses = Vec::with_capacity(ops.len());
    for op in ops {
        let Some(PbTxnOpRequest::RequestRange(request)) = op.request else {
            continue;
        };
        let answer = answer_range(request, |range, options| {
            mvcc.range(range, options, current)
        })?;
        let header = revision_only(answer.revision).unwrap_or_default();
        responses.push(PbResponseOp {
            response: Some(PbTxnOpResponse::ResponseRange(answer.into_response(header))),
        });
    }
    Ok(PbTxnResponse {
        header: revision_only(current),
        succeeded,
        responses,
    })
}

/// Calls `check` with each operation on the taken branches.
fn check_operations(
    request: &PbTxnRequest,
    branches: &[bool],
    check: &mut dyn FnMut(&PbTxnOpRequest) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    fn walk(
        request: &PbTxnRequest,
        branches: &mut std::slice::Iter<'_, bool>,
        check: &mut dyn FnMut(&PbTxnOpRequest) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let ops = match branches.next() {
            Some(true) => &request.success,
            _ => &request.failure,
        };
        for op in ops.iter().filter_map(|op| op.request.as_ref()) {
            match op {
                PbTxnOpRequest::RequestTxn(nested) => walk(nested, branches, check)?,
                _ => check(op)?,
            }
        }
        Ok(())
    }
    walk(request, &mut branches.iter(), check)
}

fn check_put(
    mvcc: &Mvcc,
    leases: &LeaseTable,
    op: &PbTxnOpRequest,
    head: i64,
) -> Result<(), ApiError> {
    let PbTxnOpRequest::RequestPut(request) = op else {
        return Ok(());
    };
    let keeps = request.ignore_value || request.ignore_lease;
    if keeps && mvcc.get(&request.key, head).is_none() {
        return Err(ApiError::KeyNotFound);
    }
    if request.lease != 0 && !leases.contains(request.lease) {
        return Err(ApiError::LeaseNotFound);
    }
    Ok(())
}

fn check_range(mvcc: &Mvcc, op: &PbTxnOpRequest, current: i64) -> Result<(), ApiError> {
    let PbTxnOpRequest::RequestRange(request) = op else {
        return Ok(());
    };
    // Unlike a range of its own, one in a txn is refused a negative revision after a compaction.
    if request.revision == 0 {
        Ok(())
    } else if request.revision > current {
        Err(ApiError::FutureRevision)
    } else if request.revision < mvcc.compact_revision() {
        Err(ApiError::Compacted)
    } else {
        Ok(())
    }
}

/// Carries out the operations of the taken branches, in order.
fn run(
    write: &mut WriteTxn<'_>,
    request: PbTxnRequest,
    branches: &mut std::vec::IntoIter<bool>,
) -> Result<PbTxnResponse, ApiError> {
    let succeeded = branches.next().unwrap_or(false);
    let ops: Vec<PbTxnRequestOp> = if succeeded {
        request.success
    } else {
        request.failure
    };
    let mut responses = Vec::with_capacity(ops.len());
    for op in ops {
        let Some(op) = op.request else {
            continue;
        };
        let response = match op {
            PbTxnOpRequest::RequestRange(request) => {
                let answer = answer_range(request, |range, options| write.range(range, options))?;
                let header = revision_only(answer.revision).unwrap_or_default();
                PbTxnOpResponse::ResponseRange(answer.into_response(header))
            }
            PbTxnOpRequest::RequestPut(request) => {
                PbTxnOpResponse::ResponsePut(put(write, request)?)
            }
            PbTxnOpRequest::RequestDeleteRange(request) => {
                PbTxnOpResponse::ResponseDeleteRange(delete_range(write, request)?)
            }
            PbTxnOpRequest::RequestTxn(request) => {
                PbTxnOpResponse::ResponseTxn(run(write, request, branches)?)
            }
        };
        responses.push(PbResponseOp {
            response: Some(response),
        });
    }
    Ok(PbTxnResponse {
        // The header of a nested answer is there and empty.
        header: Some(PbResponseHeader::default()),
        succeeded,
        responses,
    })
}
