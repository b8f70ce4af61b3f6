//! Reads of keys at a revision.

use std::sync::Arc;

use super::store::Mvcc;
use crate::{error::ApiError, key_range::KeyRange, record::Record};

/// Options of a read.
#[derive(Clone, Copy, Debug, Default)]
pub struct RangeOptions {
    /// Records to return; 0 or less is all. The count is of all regardless.
    pub limit: i64,
    /// The revision to read at; 0 or less is the current one.
    pub revision: i64,
    pub count_only: bool,
}

/// The result of a read.
#[derive(Clone, Debug, Default)]
pub struct RangeResult {
    /// In key order.
    pub records: Vec<Arc<Record>>,
    /// Keys in the range, beyond the limit too.
    pub count: i64,
    /// The current revision, which is not the one that was read at.
    pub revision: i64,
}

impl Mvcc {
    /// Reads `range` when the current revision is `current`.
    ///
    /// # Errors
    /// [`ApiError::FutureRevision`], [`ApiError::Compacted`].
    pub fn range(
        &self,
        range: &KeyRange,
        options: RangeOptions,
        current: i64,
    ) -> Result<RangeResult, ApiError> {
        let revision = self.resolve(options.revision, current)?;
        let limit = match usize::try_from(options.limit) {
            Ok(0) | Err(_) => usize::MAX,
            Ok(limit) => limit,
        };
        let mut result = RangeResult {
            revision: current,
            ..RangeResult::default()
        };
        for record in self.live_in(range, revision) {
            result.count += 1;
            if !options.count_only && result.records.len() < limit {
                result.records.push(Arc::clone(record));
            }
        }
        Ok(result)
    }

    /// Returns true if `holds` is true of every live key in `range` at `revision`; without a live
    /// key, its answer for `None`.
    pub(crate) fn all(
        &self,
        range: &KeyRange,
        revision: i64,
        mut holds: impl FnMut(Option<&Record>) -> bool,
    ) -> bool {
        let mut records = self.live_in(range, revision).peekable();
        if records.peek().is_none() {
            return holds(None);
        }
        records.all(|record| holds(Some(record)))
    }

    /// The revision of a read at `asked` when the current one is `current`.
    fn resolve(&self, asked: i64, current: i64) -> Result<i64, ApiError> {
        if asked > current {
            return Err(ApiError::FutureRevision);
        }
        let revision = if asked <= 0 { current } else { asked };
        if revision < self.compact_revision {
            return Err(ApiError::Compacted);
        }
        Ok(revision)
    }

    /// The keys in `range` that existed at `revision`, in key order.
    pub(super) fn live_in(
        &self,
        range: &KeyRange,
        revision: i64,
    ) -> impl Iterator<Item = &Arc<Record>> {
        // A point lookup is cheaper than positioning an iterator; one of the two is always empty.
        let (point, bounds) = match range {
            KeyRange::One(key) => (self.index.get(key), None),
            _ => (None, range.bounds()),
        };
        let several = bounds
            .into_iter()
            .flat_map(|bounds| self.index.range::<[u8], _>(bounds))
            .map(|(_, history)| history);
        point
            .into_iter()
            .chain(several)
            .filter_map(move |history| history.live_at(revision))
    }
}
