//! Txns that are refused before any data is read, and the effects of failed ones.

use etcd_client::proto::{
    PbCompare, PbDeleteRequest, PbPutRequest, PbRangeRequest, PbTxnOpRequest, PbTxnRequest,
    PbTxnRequestOp,
};

use super::*;
use crate::{error::ApiError, lease::LeaseTable, mvcc::Mvcc};

fn op(request: PbTxnOpRequest) -> PbTxnRequestOp {
    PbTxnRequestOp {
        request: Some(request),
    }
}

fn put(key: &str) -> PbTxnRequestOp {
    op(PbTxnOpRequest::RequestPut(PbPutRequest {
        key: key.into(),
        ..PbPutRequest::default()
    }))
}

fn delete(key: &str, range_end: &str) -> PbTxnRequestOp {
    op(PbTxnOpRequest::RequestDeleteRange(PbDeleteRequest {
        key: key.into(),
        range_end: range_end.into(),
        prev_kv: false,
    }))
}

fn nested(success: Vec<PbTxnRequestOp>, failure: Vec<PbTxnRequestOp>) -> PbTxnRequestOp {
    op(PbTxnOpRequest::RequestTxn(PbTxnRequest {
        compare: Vec::new(),
        success,
        failure,
    }))
}

fn then(success: Vec<PbTxnRequestOp>) -> PbTxnRequest {
    PbTxnRequest {
        success,
        ..PbTxnRequest::default()
    }
}

const DUPLICATE: Result<(), ApiError> = Err(ApiError::DuplicateKey);

#[test]
fn a_key_is_written_at_most_once() {
    let table = [
        (vec![put("a"), put("b")], Ok(())),
        (vec![put("a"), put("a")], DUPLICATE),
        (vec![put("a"), delete("a", "")], DUPLICATE),
        (vec![put("b"), delete("a", "c")], DUPLICATE),
        (vec![put("c"), delete("a", "c")], Ok(())),
        (vec![delete("a", "c"), delete("b", "d")], Ok(())),
        // Overlapping, touching and nested ranges are all kept track of.
        (
            vec![delete("a", "c"), delete("b", "d"), put("ca")],
            DUPLICATE,
        ),
        (
            vec![delete("a", "b"), delete("b", "d"), put("c")],
            DUPLICATE,
        ),
        (
            vec![delete("a", "z"), delete("b", "c"), put("x")],
            DUPLICATE,
        ),
        (
            vec![delete("b", "c"), delete("a", "z"), put("x")],
            DUPLICATE,
        ),
        (vec![delete("a", "b"), delete("c", "d"), put("b")], Ok(())),
        // Only one branch of a nested txn runs.
        (vec![nested(vec![put("a")], vec![put("a")])], Ok(())),
        (vec![nested(vec![put("a")], vec![delete("a", "")])], Ok(())),
        (vec![nested(vec![put("a")], vec![]), put("a")], DUPLICATE),
        (vec![nested(vec![], vec![put("a")]), put("a")], DUPLICATE),
        (
            vec![
                nested(vec![put("a")], vec![]),
                nested(vec![], vec![put("a")]),
            ],
            DUPLICATE,
        ),
        (
            vec![nested(vec![delete("a", "")], vec![]), put("a")],
            DUPLICATE,
        ),
        (
            vec![
                nested(vec![delete("a", "")], vec![]),
                nested(vec![put("a")], vec![]),
            ],
            DUPLICATE,
        ),
        // Transactions that etcd accepts.
        (
            vec![
                nested(vec![put("a")], vec![]),
                nested(vec![delete("a", "")], vec![]),
            ],
            Ok(()),
        ),
        (vec![put("b"), delete("a", "\0")], Ok(())),
        (vec![put("b"), delete("z", "a")], Ok(())),
    ];
    for (ops, expected) in table {
        assert_eq!(check::txn(&then(ops.clone()), 10), expected, "{ops:?}");
        let otherwise = PbTxnRequest {
            failure: ops.clone(),
            ..PbTxnRequest::default()
        };
        assert_eq!(check::txn(&otherwise, 10), expected, "else {ops:?}");
    }
}

#[test]
fn a_nested_txn_gets_the_operations_that_are_left() {
    let deep = then(vec![nested(vec![nested(vec![put("a")], vec![])], vec![])]);
    assert_eq!(check::txn(&deep, 3), Ok(()));
    assert_eq!(check::txn(&deep, 2), Err(ApiError::TooManyOps));
    let compare = PbCompare {
        key: b"a".to_vec(),
        ..PbCompare::default()
    };
    let comparing = PbTxnRequest {
        compare: vec![compare; 3],
        ..PbTxnRequest::default()
    };
    assert_eq!(check::txn(&comparing, 3), Ok(()));
    assert_eq!(check::txn(&comparing, 2), Err(ApiError::TooManyOps));
}

#[test]
fn an_operation_that_asks_for_nothing_is_refused() {
    let empty = then(vec![PbTxnRequestOp { request: None }]);
    assert_eq!(check::txn(&empty, 10), Err(ApiError::KeyNotFound));
    let no_key = op(PbTxnOpRequest::RequestRange(PbRangeRequest::default()));
    assert_eq!(check::txn(&then(vec![no_key]), 10), Err(ApiError::EmptyKey));
}

#[test]
fn checking_a_txn_takes_time_in_proportion_to_its_size() {
    // Quadratic work on this would take minutes; there is no clock here, the test just ends.
    let mut ops = Vec::new();
    for number in 0..100_000 {
        ops.push(put(&format!("p{number:06}")));
        ops.push(delete(&format!("d{number:06}"), &format!("d{number:06}x")));
    }
    assert_eq!(check::txn(&then(ops), usize::MAX), Ok(()));
}

#[test]
fn a_txn_that_fails_half_way_leaves_nothing_behind() {
    let mut mvcc = Mvcc::default();
    let leases = LeaseTable::default();
    perform(&mut mvcc, &leases, then(vec![put("a"), put("b")])).unwrap();
    let hash_before = mvcc.hash(0);

    // The delete without end takes away what the last put wants to keep, which no check foresees.
    let keeps = op(PbTxnOpRequest::RequestPut(PbPutRequest {
        key: b"b".to_vec(),
        ignore_value: true,
        ..PbPutRequest::default()
    }));
    let failing = then(vec![put("c"), delete("b", "\0"), keeps]);
    assert_eq!(check::txn(&failing, 10), Ok(()));
    let failed = perform(&mut mvcc, &leases, failing);
    assert_eq!(failed.unwrap_err(), ApiError::KeyNotFound);
    assert_eq!(mvcc.head(), 2);
    mvcc.publish();
    assert_eq!(mvcc.get(b"c", 3), None);
    assert_eq!(mvcc.get(b"b", 2).map(|record| record.version), Some(1));
    perform(&mut mvcc, &leases, then(vec![put("c")])).unwrap();
    assert_eq!(mvcc.head(), 3);
    assert_ne!(mvcc.hash(0), hash_before);
}
