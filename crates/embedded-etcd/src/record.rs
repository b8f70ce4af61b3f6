//! One version of one key: the unit that is indexed, watched and stored.

use bytes::Bytes;
use etcd_client::proto::PbKeyValue;

/// A point in the history: `main` counts committed writes, `sub` the changes within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    pub main: i64,
    pub sub: i64,
}

impl Revision {
    /// The first point of `main`.
    #[must_use]
    pub fn first_of(main: i64) -> Self {
        Self { main, sub: 0 }
    }

    /// The last point of `main`.
    #[must_use]
    pub fn last_of(main: i64) -> Self {
        Self {
            main,
            sub: i64::MAX,
        }
    }
}

/// The change of one key by one write.
///
/// Shape: a tombstone has an empty value, and create revision, version and lease 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub key: Bytes,
    pub value: Bytes,
    /// The revision of the key's last creation.
    pub create_revision: i64,
    /// The revision of this version.
    pub revision: Revision,
    /// 1 at creation, one more with each put, 0 for a tombstone.
    pub version: i64,
    /// The lease the key dies with; 0 is none.
    pub lease: i64,
}

impl Record {
    /// The mark that `key` was deleted.
    #[must_use]
    pub fn tombstone(key: Bytes, revision: Revision) -> Self {
        Self {
            key,
            value: Bytes::new(),
            create_revision: 0,
            revision,
            version: 0,
            lease: 0,
        }
    }

    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        self.version == 0
    }

    /// Returns true if a watcher sees this as the creation of the key.
    #[must_use]
    pub fn is_creation(&self) -> bool {
        !self.is_tombstone() && self.create_revision == self.revision.main
    }

    /// The approximate size of the record on the wire, in bytes; for limits, not for framing.
    #[must_use]
    pub fn size(&self) -> usize {
        /// Field tags and five numbers, each a few bytes of varint.
        const NUMBERS: usize = 40;
        self.key.len() + self.value.len() + NUMBERS
    }

    /// The record as etcd's message; a deleted key carries only its name and when.
    #[must_use]
    pub fn to_key_value(&self, keys_only: bool) -> PbKeyValue {
        PbKeyValue {
            key: self.key.to_vec(),
            create_revision: self.create_revision,
            mod_revision: self.revision.main,
            version: self.version,
            value: if keys_only {
                Vec::new()
            } else {
                self.value.to_vec()
            },
            lease: self.lease,
        }
    }
}
