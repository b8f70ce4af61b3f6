//! Validation of requests before any data is read.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Bound,
};

use etcd_client::proto::{
    PbDeleteRequest, PbPutRequest, PbRangeRequest, PbTxnOpRequest, PbTxnRequest, PbTxnRequestOp,
};

use crate::error::ApiError;

/// # Errors
/// [`ApiError::EmptyKey`].
pub fn range(request: &PbRangeRequest) -> Result<(), ApiError> {
    key_is_given(&request.key)
}

/// # Errors
/// [`ApiError::EmptyKey`], [`ApiError::ValueProvided`], [`ApiError::LeaseProvided`].
pub fn put(request: &PbPutRequest) -> Result<(), ApiError> {
    key_is_given(&request.key)?;
    if request.ignore_value && !request.value.is_empty() {
        return Err(ApiError::ValueProvided);
    }
    if request.ignore_lease && request.lease != 0 {
        return Err(ApiError::LeaseProvided);
    }
    Ok(())
}

/// # Errors
/// [`ApiError::EmptyKey`].
pub fn delete_range(request: &PbDeleteRequest) -> Result<(), ApiError> {
    key_is_given(&request.key)
}

/// Checks a whole txn: its size, each operation, and that no key is written twice.
///
/// # Errors
/// [`ApiError::TooManyOps`], [`ApiError::DuplicateKey`], [`ApiError::KeyNotFound`] for an operation
/// that asks for nothing, and those of the operations.
pub fn txn(request: &PbTxnRequest, max_ops: usize) -> Result<(), ApiError> {
    sizes_and_operations(request, max_ops)?;
    writes_of(&request.success)?;
    writes_of(&request.failure)?;
    Ok(())
}

fn key_is_given(key: &[u8]) -> Result<(), ApiError> {
    if key.is_empty() {
        return Err(ApiError::EmptyKey);
    }
    Ok(())
}

fn sizes_and_operations(request: &PbTxnRequest, max_ops: usize) -> Result<(), ApiError> {
    let ops = request
        .compare
        .len()
        .max(request.success.len())
        .max(request.failure.len());
    // A nested txn gets what its parent leaves.
    let left = max_ops.checked_sub(ops).ok_or(ApiError::TooManyOps)?;
    for compare in &request.compare {
        key_is_given(&compare.key)?;
    }
    for op in request.success.iter().chain(&request.failure) {
        match op.request.as_ref().ok_or(ApiError::KeyNotFound)? {
            PbTxnOpRequest::RequestRange(request) => range(request)?,
            PbTxnOpRequest::RequestPut(request) => put(request)?,
            PbTxnOpRequest::RequestDeleteRange(request) => delete_range(request)?,
            PbTxnOpRequest::RequestTxn(request) => sizes_and_operations(request, left)?,
        }
    }
    Ok(())
}

/// The puts and deletions that a list of operations may make, whichever branches are taken.
#[derive(Default)]
struct Writes<'a> {
    puts: HashSet<&'a [u8]>,
    deletes: Deletes<'a>,
}

/// Collects the writes of `ops`, and fails if a key could be written twice.
///
/// Source: etcd's `checkIntervals`, gaps included: a nested put before a nested delete of a later
/// sibling is allowed, and so is any put beside a delete without end.
fn writes_of(ops: &[PbTxnRequestOp]) -> Result<Writes<'_>, ApiError> {
    let mut writes = Writes::default();
    for op in ops {
        if let Some(PbTxnOpRequest::RequestDeleteRange(request)) = &op.request {
            writes.deletes.insert(&request.key, &request.range_end);
        }
    }
    for op in ops {
        if let Some(PbTxnOpRequest::RequestTxn(request)) = &op.request {
            add_nested(&mut writes, request)?;
        }
    }
    for op in ops {
        if let Some(PbTxnOpRequest::RequestPut(request)) = &op.request
            && (writes.deletes.contains(&request.key) || !writes.puts.insert(&request.key))
        {
            return Err(ApiError::DuplicateKey);
        }
    }
    Ok(writes)
}

fn add_nested<'a>(writes: &mut Writes<'a>, request: &'a PbTxnRequest) -> Result<(), ApiError> {
    let then = writes_of(&request.success)?;
    let otherwise = writes_of(&request.failure)?;
    for key in &then.puts {
        if writes.deletes.contains(key) || !writes.puts.insert(key) {
            return Err(ApiError::DuplicateKey);
        }
    }
    for key in &otherwise.puts {
        // Only one of the two branches runs, so they may put the same key.
        let is_new = writes.puts.insert(key);
        if writes.deletes.contains(key) || !(is_new || then.puts.contains(key)) {
            return Err(ApiError::DuplicateKey);
        }
    }
    writes.deletes.add_all(then.deletes);
    writes.deletes.add_all(otherwise.deletes);
    Ok(())
}

/// A set of keys and half-open ranges of keys.
#[derive(Default)]
struct Deletes<'a> {
    keys: HashSet<&'a [u8]>,
    /// Start → end; the ranges neither overlap nor touch.
    ranges: BTreeMap<&'a [u8], &'a [u8]>,
}

impl<'a> Deletes<'a> {
    fn insert(&mut self, key: &'a [u8], range_end: &'a [u8]) {
        if range_end.is_empty() {
            self.keys.insert(key);
        } else if key < range_end {
            self.insert_range(key, range_end);
        }
        // The remaining ranges are inverted, the end `\0` for "no end" among them: etcd compares them
        // as written, and so they clash with nothing.
    }

    fn insert_range(&mut self, mut start: &'a [u8], mut end: &'a [u8]) {
        while let Some((&other_start, &other_end)) = self.ranges.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.ranges.remove(other_start);
            start = start.min(other_start);
            end = end.max(other_end);
        }
        self.ranges.insert(start, end);
    }

    fn contains(&self, key: &[u8]) -> bool {
        if self.keys.contains(key) {
            return true;
        }
        let before = self
            .ranges
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(key)))
            .next_back();
        before.is_some_and(|(_, end)| key < *end)
    }

    fn add_all(&mut self, other: Self) {
        self.keys.extend(other.keys);
        for (start, end) in other.ranges {
            self.insert_range(start, end);
        }
    }
}
