//! A transaction in which every write names what it expects to find.
//!
//! `create` expects nothing, `update` and `delete` the revision that was read; what else must hold
//! is required by name. All of it is carried out at one revision, or nothing is.

use std::collections::HashMap;

use state::Key;

use crate::codec::Value;
use crate::election::Fence;
use crate::keys::Keyspace;

/// How large one transaction may be. etcd's own limits are set well above
/// (`--max-txn-ops`, `--max-request-bytes`), so that ours is the one that is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Compares or writes, whichever are more: the way etcd counts.
    pub max_ops: usize,
    /// Keys and values, compares included.
    pub max_bytes: usize,
}

impl Limits {
    /// Beyond 1,000 operations a transaction gets slower faster than it gets larger (measured:
    /// 167,000 keys/s at 1,000 on one member, 59,000 on three, where 512 do 63,000); 1 MiB is two
    /// thirds of what etcd accepts unless told otherwise.
    pub const DEFAULT: Self = Self {
        max_ops: 1_000,
        max_bytes: 1 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Limits {
    /// Returns the limits of a transaction for `room`.
    pub fn with(self, room: Room) -> Self {
        let max_bytes = match room {
            Room::New => self.max_bytes,
            Room::Dispatch => self.max_bytes / 2 * 3,
            Room::FollowUp => self.max_bytes * 3,
        };
        Self { max_bytes, ..self }
    }
}

/// How much larger a transaction may be than one that brings something new.
///
/// What was accepted once is written again, with more beside it: stopped, scaled, launched,
/// reverted together with the end of a deployment. That must not fail for want of room, so each
/// step of such a chain has more of it than the one before. With the default limits the largest
/// is 3 MiB, and etcd is started with 4 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// What users bring: 1 MiB.
    New,
    /// The child of an accepted job with what it is told, 16 KiB of payload among that: 1.5 MiB.
    Dispatch,
    /// What follows from something that is stored: 3 MiB. A failed deployment that is reverted
    /// writes the job twice (up to 1.5 MiB if it was dispatched) and itself, which a plan of at
    /// most 1 MiB has created.
    FollowUp,
}

#[derive(Debug, thiserror::Error)]
pub enum TxnError {
    #[error("the transaction would have more than {max} operations: cut it")]
    TooManyOps { max: usize },
    #[error("the transaction would have more than {max} bytes: cut it")]
    TooManyBytes { max: usize },
    #[error("{key:?} is written twice in one transaction")]
    WrittenTwice { key: Key },
    #[error("{key:?} is required to be two different things in one transaction")]
    Contradiction { key: Key },
    #[error("{key:?} cannot hold this value: another kind, or another name")]
    Mismatch { key: Key },
    #[error("{key:?} is to be changed at revision 0, which says it does not exist: create it")]
    NothingToChange { key: Key },
    #[error("cannot encode the value of {key:?}")]
    Encode {
        key: Key,
        #[source]
        source: serde_json::Error,
    },
}

/// What a key is expected to be when the transaction is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Absent,
    /// Not changed since this revision.
    ModRevision(u64),
    /// The same key as the one created at this revision, whatever its value is now.
    CreateRevision(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Compare {
    pub(crate) key: Key,
    pub(crate) text: String,
    pub(crate) expected: Expected,
}

#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) key: Key,
    pub(crate) text: String,
    /// `None`: delete.
    pub(crate) value: Option<Vec<u8>>,
    /// 0: none.
    pub(crate) lease: i64,
    pub(crate) expected: Expected,
}

/// What a message spends on an operation beside its key and value: field tags, lengths, revisions.
const OP_OVERHEAD_BYTES: usize = 32;

/// A transaction under construction. An operation that is refused leaves it as it was.
#[derive(Clone, Debug)]
pub struct Txn {
    keyspace: Keyspace,
    limits: Limits,
    compares: Vec<Compare>,
    writes: Vec<Write>,
    /// The key's text → where its compare stands, and whether it is written.
    uses: HashMap<String, Use>,
    fences: Vec<Fence>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Use {
    compare: usize,
    written: bool,
}

impl Txn {
    pub(crate) fn new(keyspace: Keyspace, limits: Limits) -> Self {
        Self {
            keyspace,
            limits,
            compares: Vec::new(),
            writes: Vec::new(),
            uses: HashMap::new(),
            fences: Vec::new(),
            bytes: 0,
        }
    }

    /// Stores a new object; the transaction fails when the key exists.
    ///
    /// # Errors
    /// It does not fit, or the key was already used otherwise.
    pub fn create<'a>(
        &mut self,
        key: &Key,
        value: impl Into<Value<'a>>,
    ) -> Result<&mut Self, TxnError> {
        let value = encode(key, value.into())?;
        self.add(
            key,
            Expected::Absent,
            Some(Operation {
                value: Some(value),
                lease: 0,
            }),
        )
    }

    /// Replaces an object last changed at `mod_revision`; the transaction fails when somebody has
    /// changed or deleted it since.
    ///
    /// # Errors
    /// It does not fit, or the key was already used otherwise, or `mod_revision` is 0.
    pub fn update<'a>(
        &mut self,
        key: &Key,
        mod_revision: u64,
        value: impl Into<Value<'a>>,
    ) -> Result<&mut Self, TxnError> {
        let value = encode(key, value.into())?;
        let expected = unchanged(key, mod_revision)?;
        self.add(
            key,
            expected,
            Some(Operation {
                value: Some(value),
                lease: 0,
            }),
        )
    }

    /// Deletes an object last changed at `mod_revision`.
    ///
    /// # Errors
    /// It does not fit, or the key was already used otherwise, or `mod_revision` is 0.
    pub fn delete(&mut self, key: &Key, mod_revision: u64) -> Result<&mut Self, TxnError> {
        let expected = unchanged(key, mod_revision)?;
        self.add(
            key,
            expected,
            Some(Operation {
                value: None,
                lease: 0,
            }),
        )
    }

    /// Makes the transaction fail when the key was changed after `mod_revision`.
    ///
    /// # Errors
    /// It does not fit, or contradicts what was required before, or `mod_revision` is 0.
    pub fn require_unchanged(
        &mut self,
        key: &Key,
        mod_revision: u64,
    ) -> Result<&mut Self, TxnError> {
        let expected = unchanged(key, mod_revision)?;
        self.add(key, expected, None)
    }

    /// Makes the transaction fail when the key exists.
    ///
    /// # Errors
    /// It does not fit, or contradicts what was required before.
    pub fn require_absent(&mut self, key: &Key) -> Result<&mut Self, TxnError> {
        self.add(key, Expected::Absent, None)
    }

    /// Makes the transaction fail when the fence's leader no longer is one.
    ///
    /// # Errors
    /// It does not fit, or another term of the same service was required before.
    pub fn fence(&mut self, fence: &Fence) -> Result<&mut Self, TxnError> {
        self.add(
            &fence.key(),
            Expected::CreateRevision(fence.create_revision),
            None,
        )?;
        if !self.fences.contains(fence) {
            self.fences.push(fence.clone());
        }
        Ok(self)
    }

    /// Stores a new object that vanishes with `lease`.
    pub(crate) fn create_leased<'a>(
        &mut self,
        key: &Key,
        value: impl Into<Value<'a>>,
        lease: i64,
    ) -> Result<&mut Self, TxnError> {
        let value = encode(key, value.into())?;
        self.add(
            key,
            Expected::Absent,
            Some(Operation {
                value: Some(value),
                lease,
            }),
        )
    }

    /// Takes in everything of `other`, so that both are carried out at one revision or not at all.
    /// What both require alike is required once.
    ///
    /// # Errors
    /// The two do not fit together, in size or in what they require; `self` is as it was.
    pub fn merge(&mut self, other: &Self) -> Result<&mut Self, TxnError> {
        let before = (
            self.compares.len(),
            self.writes.len(),
            self.fences.len(),
            self.bytes,
        );
        let taken = self.take_in(other);
        if taken.is_err() {
            let (compares, writes, fences, bytes) = before;
            for write in self.writes.drain(writes..) {
                self.uses
                    .entry(write.text)
                    .and_modify(|used| used.written = false);
            }
            for compare in self.compares.drain(compares..) {
                self.uses.remove(&compare.text);
            }
            self.fences.truncate(fences);
            self.bytes = bytes;
        }
        taken.map(|()| self)
    }

    fn take_in(&mut self, other: &Self) -> Result<(), TxnError> {
        for compare in &other.compares {
            self.add(&compare.key, compare.expected, None)?;
        }
        for write in &other.writes {
            let operation = Operation {
                value: write.value.clone(),
                lease: write.lease,
            };
            self.add(&write.key, write.expected, Some(operation))?;
        }
        for fence in &other.fences {
            if !self.fences.contains(fence) {
                self.fences.push(fence.clone());
            }
        }
        Ok(())
    }

    /// Returns compares or writes, whichever are more.
    pub fn op_count(&self) -> usize {
        self.compares.len().max(self.writes.len())
    }

    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    pub fn write_count(&self) -> usize {
        self.writes.len()
    }

    /// Tells whether it would change nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    pub(crate) fn compares(&self) -> &[Compare] {
        &self.compares
    }

    pub(crate) fn writes(&self) -> &[Write] {
        &self.writes
    }

    pub(crate) fn carries(&self, fence: &Fence) -> bool {
        self.fences.contains(fence)
    }

    fn add(
        &mut self,
        key: &Key,
        expected: Expected,
        operation: Option<Operation>,
    ) -> Result<&mut Self, TxnError> {
        let text = self.keyspace.encode(key);
        let used = self.uses.get(&text).copied();
        if let Some(used) = used {
            if used.written && operation.is_some() {
                return Err(TxnError::WrittenTwice { key: key.clone() });
            }
            if self.compares[used.compare].expected != expected {
                return Err(TxnError::Contradiction { key: key.clone() });
            }
        }
        self.check_room(&text, used.is_none(), operation.as_ref())?;
        let compare = used.map_or(self.compares.len(), |used| used.compare);
        if used.is_none() {
            self.compares.push(Compare {
                key: key.clone(),
                text: text.clone(),
                expected,
            });
        }
        let used = self.uses.entry(text.clone()).or_insert(Use {
            compare,
            written: false,
        });
        if let Some(Operation { value, lease }) = operation {
            used.written = true;
            self.writes.push(Write {
                key: key.clone(),
                text,
                value,
                lease,
                expected,
            });
        }
        Ok(self)
    }

    /// Counts what is added, unless it would be too much.
    fn check_room(
        &mut self,
        text: &str,
        compared: bool,
        operation: Option<&Operation>,
    ) -> Result<(), TxnError> {
        let compares = self.compares.len() + usize::from(compared);
        let writes = self.writes.len() + usize::from(operation.is_some());
        if compares.max(writes) > self.limits.max_ops {
            return Err(TxnError::TooManyOps {
                max: self.limits.max_ops,
            });
        }
        let mut bytes = self.bytes;
        if compared {
            // Once to compare, once to read what it is when the comparison fails.
            bytes += 2 * (text.len() + OP_OVERHEAD_BYTES);
        }
        if let Some(operation) = operation {
            let value = operation.value.as_ref().map_or(0, Vec::len);
            bytes += text.len() + value + OP_OVERHEAD_BYTES;
        }
        if bytes > self.limits.max_bytes {
            return Err(TxnError::TooManyBytes {
                max: self.limits.max_bytes,
            });
        }
        self.bytes = bytes;
        Ok(())
    }
}

struct Operation {
    value: Option<Vec<u8>>,
    lease: i64,
}

fn encode(key: &Key, value: Value<'_>) -> Result<Vec<u8>, TxnError> {
    if !value.belongs_to(key) {
        return Err(TxnError::Mismatch { key: key.clone() });
    }
    value.encode().map_err(|source| TxnError::Encode {
        key: key.clone(),
        source,
    })
}

fn unchanged(key: &Key, mod_revision: u64) -> Result<Expected, TxnError> {
    if mod_revision == 0 {
        return Err(TxnError::NothingToChange { key: key.clone() });
    }
    Ok(Expected::ModRevision(mod_revision))
}

#[cfg(test)]
mod tests;
