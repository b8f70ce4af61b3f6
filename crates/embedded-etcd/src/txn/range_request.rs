//! etcd's range request: selection and order of records, and the response.

use std::sync::Arc;

use etcd_client::proto::{PbRangeRequest, PbRangeResponse, PbResponseHeader};

use crate::{
    error::ApiError,
    key_range::KeyRange,
    mvcc::{RangeOptions, RangeResult},
    record::Record,
};

/// etcd's `RangeRequest.SortOrder` and `SortTarget`, which the client crate exports only as numbers
/// in a message.
const ORDER_NONE: i32 = 0;
const ORDER_DESCEND: i32 = 2;
const TARGET_KEY: i32 = 0;
const TARGET_VERSION: i32 = 1;
const TARGET_CREATE: i32 = 2;
const TARGET_MOD: i32 = 3;
const TARGET_VALUE: i32 = 4;

/// The result of a range request; cheap to create, so that values are copied after the store
/// is unlocked.
#[derive(Clone, Debug)]
pub struct RangeAnswer {
    records: Vec<Arc<Record>>,
    more: bool,
    count: i64,
    /// The current revision.
    pub revision: i64,
    keys_only: bool,
}

impl RangeAnswer {
    /// The answer as etcd's message.
    #[must_use]
    pub fn into_response(self, header: PbResponseHeader) -> PbRangeResponse {
        PbRangeResponse {
            header: Some(header),
            kvs: self
                .records
                .iter()
                .map(|record| record.to_key_value(self.keys_only))
                .collect(),
            more: self.more,
            count: self.count,
        }
    }
}

/// Answers `request`, reading through `read`.
///
/// # Errors
/// Those of `read`.
pub(crate) fn answer_range(
    request: PbRangeRequest,
    read: impl FnOnce(&KeyRange, RangeOptions) -> Result<RangeResult, ApiError>,
) -> Result<RangeAnswer, ApiError> {
    let bounded = request.min_mod_revision != 0
        || request.max_mod_revision != 0
        || request.min_create_revision != 0
        || request.max_create_revision != 0;
    let limit = usize::try_from(request.limit).unwrap_or(0);
    // Everything is read when the selection depends on all records; otherwise one more than
    // requested, which shows whether there is more.
    let limit_of_read = if request.sort_order != ORDER_NONE || bounded || limit == 0 {
        0
    } else {
        request.limit.saturating_add(1)
    };
    let range = KeyRange::new(request.key, request.range_end);
    let mut result = read(
        &range,
        RangeOptions {
            limit: limit_of_read,
            revision: request.revision,
            count_only: request.count_only,
        },
    )?;

    let within = |revision: i64, min: i64, max: i64| {
        (max == 0 || revision <= max) && (min == 0 || revision >= min)
    };
    if bounded {
        result.records.retain(|record| {
            within(
                record.revision.main,
                request.min_mod_revision,
                request.max_mod_revision,
            ) && within(
                record.create_revision,
                request.min_create_revision,
                request.max_create_revision,
            )
        });
    }
    sort(&mut result.records, request.sort_order, request.sort_target);
    let more = limit > 0 && result.records.len() > limit;
    if more {
        result.records.truncate(limit);
    }
    Ok(RangeAnswer {
        records: result.records,
        more,
        count: result.count,
        revision: result.revision,
        keys_only: request.keys_only,
    })
}

/// Sorts records that are in key order; equal records stay in key order. A target other than the
/// key is ascending unless told otherwise.
fn sort(records: &mut [Arc<Record>], order: i32, target: i32) {
    if order == ORDER_NONE && target == TARGET_KEY {
        return;
    }
    let descend = order == ORDER_DESCEND;
    records.sort_by(|a, b| {
        let ordering = match target {
            TARGET_KEY => a.key.cmp(&b.key),
            TARGET_VERSION => a.version.cmp(&b.version),
            TARGET_CREATE => a.create_revision.cmp(&b.create_revision),
            TARGET_MOD => a.revision.main.cmp(&b.revision.main),
            TARGET_VALUE => a.value.cmp(&b.value),
            _ => std::cmp::Ordering::Equal,
        };
        if descend {
            ordering.reverse()
        } else {
            ordering
        }
    });
}
