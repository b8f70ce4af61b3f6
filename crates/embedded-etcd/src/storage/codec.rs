//! Encoding of records and leases on disk, and the checks when they are read back.
//!
//! Every entry is a CRC-32C of the rest, then the rest. A record's rest is etcd's `KeyValue`
//! message, a lease's its seconds. What fails a check is a [`Corruption`], never a panic.

use bytes::Bytes;
use crc32c::crc32c;
use etcd_client::proto::PbKeyValue;
use prost::Message as _;

use crate::{
    error::Corruption,
    lease,
    record::{Record, Revision},
};

const CRC_BYTES: usize = 4;

/// The value of a record's entry; its key is the revision.
#[must_use]
pub fn encode_record(record: &Record) -> Vec<u8> {
    let kv = record.to_key_value(false);
    seal(kv.encoded_len(), |entry| {
        kv.encode(entry).expect("a vector grows as needed");
    })
}

/// Reads the entry of `revision` back.
///
/// # Errors
/// [`Corruption::Record`] names the problem.
pub fn decode_record(revision: Revision, entry: &[u8]) -> Result<Record, Corruption> {
    let corrupt = |fault| Corruption::Record {
        main: revision.main,
        sub: revision.sub,
        fault,
    };
    let body = open(entry).map_err(corrupt)?;
    let kv = PbKeyValue::decode(body).map_err(|_| corrupt("is not a key-value message"))?;
    if !is_revision(revision) || kv.mod_revision != revision.main {
        return Err(corrupt("does not belong to its revision"));
    }
    if kv.key.is_empty() {
        return Err(corrupt("has no key"));
    }
    let is_tombstone = kv.version == 0;
    if is_tombstone && (kv.create_revision != 0 || kv.lease != 0 || !kv.value.is_empty()) {
        return Err(corrupt("is a deletion with a value"));
    }
    // No write puts a key twice, so there is at most one version a revision since the creation.
    let is_version = is_tombstone
        || ((1..=kv.mod_revision).contains(&kv.create_revision)
            && (1..=kv.mod_revision - kv.create_revision + 1).contains(&kv.version));
    if !is_version {
        return Err(corrupt("has an impossible version"));
    }
    Ok(Record {
        key: Bytes::from(kv.key),
        value: Bytes::from(kv.value),
        create_revision: kv.create_revision,
        revision,
        version: kv.version,
        lease: kv.lease,
    })
}

/// The value of a lease's entry; its key is the id.
#[must_use]
pub fn encode_lease(ttl: i64) -> Vec<u8> {
    let body = ttl.to_be_bytes();
    seal(body.len(), |entry| entry.extend_from_slice(&body))
}

/// Reads the seconds of lease `id` back.
///
/// # Errors
/// [`Corruption::Lease`] names the problem.
pub fn decode_lease(id: i64, entry: &[u8]) -> Result<i64, Corruption> {
    let corrupt = |fault| Corruption::Lease { id, fault };
    let body = open(entry).map_err(corrupt)?;
    let bytes = body
        .try_into()
        .map_err(|_| corrupt("is not eight bytes long"))?;
    let ttl = i64::from_be_bytes(bytes);
    if id == 0 || !(lease::MIN_TTL..=lease::MAX_TTL).contains(&ttl) {
        return Err(corrupt(
            "has an id or a time to live that cannot be granted",
        ));
    }
    Ok(ttl)
}

/// Returns true for a plausible revision, one from which counting on cannot overflow.
fn is_revision(revision: Revision) -> bool {
    const MAX: i64 = 1 << 62;
    (1..=MAX).contains(&revision.main) && (0..=MAX).contains(&revision.sub)
}

/// Reads the revision of the last compaction back.
///
/// # Errors
/// [`Corruption::Meta`].
pub fn decode_compact_revision(found: i64) -> Result<i64, Corruption> {
    if found == 0 || is_revision(Revision::first_of(found)) {
        return Ok(found);
    }
    Err(Corruption::Meta {
        key: "compact_revision",
        fault: "is not a valid revision",
    })
}

/// An entry; `write` appends its body of about `size` bytes.
pub(crate) fn seal(size: usize, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut entry = Vec::with_capacity(CRC_BYTES + size);
    entry.extend_from_slice(&[0; CRC_BYTES]);
    write(&mut entry);
    let (crc, body) = entry.split_at_mut(CRC_BYTES);
    crc.copy_from_slice(&crc32c(body).to_be_bytes());
    entry
}

fn open(entry: &[u8]) -> Result<&[u8], &'static str> {
    let (crc, body) = entry
        .split_first_chunk::<CRC_BYTES>()
        .ok_or("is cut short")?;
    if u32::from_be_bytes(*crc) != crc32c(body) {
        return Err("fails its checksum");
    }
    Ok(body)
}

#[cfg(test)]
mod tests;
