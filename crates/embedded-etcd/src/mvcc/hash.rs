//! Hash of all keys and versions, which etcd uses to compare the members of a cluster.

use crc32c::crc32c_append;
use etcd_client::proto::PbKeyValue;
use prost::Message as _;

use super::store::Mvcc;
use crate::{error::ApiError, record::Record};

impl Mvcc {
    /// The hash of the writes up to `revision` (0 is the current one), as etcd computes it: a store
    /// with the same history has the same hash, however far its compaction has got.
    ///
    /// Source: etcd's `server/mvcc/hash.go`.
    ///
    /// # Errors
    /// [`ApiError::Compacted`], [`ApiError::FutureRevision`].
    pub fn hash(&self, revision: i64) -> Result<u32, ApiError> {
        if revision > 0 && revision < self.compact_revision {
            return Err(ApiError::Compacted);
        }
        if revision > self.visible {
            return Err(ApiError::FutureRevision);
        }
        let revision = if revision == 0 {
            self.visible
        } else {
            revision
        };
        let anything_lives = self
            .index
            .values()
            .any(|history| history.live_at(revision).is_some());
        let mut crc = crc32c_append(0, b"key");
        for record in self.log.values() {
            if record.revision.main > revision {
                break;
            }
            if self.is_hashed(record, revision, anything_lives) {
                crc = crc32c_append(crc, &key_of(record));
                crc = crc32c_append(crc, &value_of(record));
            }
        }
        Ok(crc)
    }

    /// Of compacted records, only those alive at `revision` count. When there are none, etcd counts
    /// all records that the compaction left, except deletions.
    fn is_hashed(&self, record: &Record, revision: i64, anything_lives: bool) -> bool {
        if record.revision.main > self.compact_revision {
            return true;
        }
        if !anything_lives {
            return !record.is_tombstone() && self.survives(record, self.compact_revision);
        }
        let living = self.get(&record.key, revision);
        living.is_some_and(|living| living.revision == record.revision)
    }
}

/// The key of the record in etcd's file.
fn key_of(record: &Record) -> Vec<u8> {
    let mut key = Vec::with_capacity(18);
    key.extend_from_slice(&record.revision.main.to_be_bytes());
    key.push(b'_');
    key.extend_from_slice(&record.revision.sub.to_be_bytes());
    if record.is_tombstone() {
        key.push(b't');
    }
    key
}

/// The value of the record in etcd's file; a tombstone's is its key alone.
fn value_of(record: &Record) -> Vec<u8> {
    if record.is_tombstone() {
        return PbKeyValue {
            key: record.key.to_vec(),
            ..PbKeyValue::default()
        }
        .encode_to_vec();
    }
    record.to_key_value(false).encode_to_vec()
}
