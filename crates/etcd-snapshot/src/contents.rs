//! Contents of a snapshot: its revision, and the keys of each table.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek};

use prost::Message;

use crate::SnapshotError;
use crate::bolt::Database;

/// The bucket of all versions of all keys.
const KEYS: &[u8] = b"key";
/// Size of a version's key: its revision, an underscore, and its number in the transaction.
const REVISION_BYTES: usize = 17;
/// The byte after the revision in the key of a deletion.
const TOMBSTONE: u8 = b't';

/// A key and its value, as etcd stores it (`mvccpb.KeyValue`); other fields are skipped.
#[derive(Clone, PartialEq, Eq, Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

/// The contents of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The newest revision.
    pub revision: u64,
    /// Versions of keys, old ones and deletions included.
    pub versions: u64,
    /// Name of the table -> its keys that are not deleted. Keys outside of the prefix have the name "".
    pub tables: BTreeMap<String, Table>,
}

/// The keys of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub keys: u64,
    /// Size of keys and values.
    pub bytes: u64,
}

/// Counts the objects in the first `size` bytes of `file`; tables are named by the part of the keys
/// after `prefix`.
///
/// # Errors
/// The file cannot be read, or is no database of etcd.
pub fn read(file: impl Read + Seek, size: u64, prefix: &str) -> Result<Contents, SnapshotError> {
    let mut database = Database::open(file, size)?;
    let mut contents = Contents::default();
    // Versions come in the order of their revisions, so the last one of a key counts.
    let mut newest: HashMap<Vec<u8>, Option<u64>> = HashMap::new();
    database.for_each(KEYS, |revision, value| {
        contents.revision = contents.revision.max(revision_of(revision)?);
        contents.versions += 1;
        let stored = KeyValue::decode(value)
            .map_err(|_| SnapshotError::Invalid("a key cannot be decoded"))?;
        let bytes = (stored.key.len() + stored.value.len()) as u64;
        let is_deleted = revision.get(REVISION_BYTES) == Some(&TOMBSTONE);
        newest.insert(stored.key, (!is_deleted).then_some(bytes));
        Ok(())
    })?;
    for (key, bytes) in newest {
        let Some(bytes) = bytes else { continue };
        let table = contents.tables.entry(table_of(&key, prefix)).or_default();
        table.keys += 1;
        table.bytes += bytes;
    }
    Ok(contents)
}

fn revision_of(key: &[u8]) -> Result<u64, SnapshotError> {
    let main = key.first_chunk::<8>();
    main.map(|main| u64::from_be_bytes(*main))
        .ok_or(SnapshotError::Invalid("a revision is damaged"))
}

fn table_of(key: &[u8], prefix: &str) -> String {
    let Some(rest) = key.strip_prefix(prefix.as_bytes()) else {
        return String::new();
    };
    let name = rest.split(|byte| *byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_the_first_part_below_the_prefix() {
        let of = |key: &str| table_of(key.as_bytes(), "/kafila/v1/");
        assert_eq!(of("/kafila/v1/job/default/web"), "job");
        assert_eq!(of("/kafila/v1/scheduler-config"), "scheduler-config");
        assert_eq!(of("/other/job/web"), "");
    }
}
