//! Transactions in which every write carries a compare.
//!
//! [`Txn::add`] takes a [`Write`], which cannot be expressed without its compare. All writes happen
//! at one revision, or none does.

use std::collections::HashMap;

use state::{Key, Write};

use crate::codec::Value;
use crate::election::fence::Fence;
use crate::keys::Keyspace;

/// Size limits of one transaction. etcd's own limits (`--max-txn-ops`, `--max-request-bytes`) are
/// configured well above, so these are reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The larger number of compares and writes, as etcd counts.
    pub max_ops: usize,
    /// Keys and values, compares included.
    pub max_bytes: usize,
}

impl Limits {
    pub const DEFAULT: Self = Self {
        max_ops: state::entity::TRANSACTION_OPERATIONS,
        max_bytes: state::entity::TRANSACTION_BYTES,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Limits {
    /// Returns the limits of a transaction of a size class.
    pub fn with(self, class: SizeClass) -> Self {
        let max_bytes = match class {
            SizeClass::New => self.max_bytes,
            SizeClass::Dispatch => self.max_bytes / 2 * 3,
            SizeClass::FollowUp => self.max_bytes * 3,
        };
        Self { max_bytes, ..self }
    }
}

/// Size class of a transaction: follow-ups may be larger than the request that they follow.
///
/// An accepted job is written again together with other objects when it is stopped, scaled,
/// launched, or reverted with the end of a deployment. Such a write must not exceed a limit that
/// the job itself met, so each step of such a chain has a higher limit than the step before. With
/// the default limits the largest is 3 MiB, and etcd is started with 4 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeClass {
    /// Objects submitted by users: 1 MiB.
    New,
    /// A child of an accepted job with its dispatch arguments, 16 KiB of payload included: 1.5 MiB.
    Dispatch,
    /// Consequences of stored objects: 3 MiB. The revert of a failed deployment writes the job twice
    /// (up to 1.5 MiB if it was dispatched) and the deployment, which a plan of at most 1 MiB has
    /// created.
    FollowUp,
}

#[derive(Debug, thiserror::Error)]
pub enum TxnError {
    #[error("the transaction would have more than {max} operations: split it")]
    TooManyOps { max: usize },
    #[error("the transaction would have more than {max} bytes: split it")]
    TooManyBytes { max: usize },
    #[error("{key:?} is written twice in one transaction")]
    WrittenTwice { key: Key },
    #[error("{key:?} has contradicting compares in one transaction")]
    Contradiction { key: Key },
    #[error("{key:?} cannot hold this value: its kind or its name differs")]
    Mismatch { key: Key },
    #[error(
        "{key:?} cannot be changed at revision 0, which means that it does not exist: create it"
    )]
    NothingToChange { key: Key },
    #[error("cannot encode the value of {key:?}")]
    Encode {
        key: Key,
        #[source]
        source: serde_json::Error,
    },
}

impl TxnError {
    /// Tells whether a smaller transaction may succeed.
    pub fn is_of_size(&self) -> bool {
        matches!(self, Self::TooManyOps { .. } | Self::TooManyBytes { .. })
    }
}

/// The expected state of a key when the transaction is executed.
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
pub(crate) struct EncodedWrite {
    pub(crate) key: Key,
    pub(crate) text: String,
    /// `None`: delete.
    pub(crate) value: Option<Vec<u8>>,
    /// 0: none.
    pub(crate) lease: i64,
    pub(crate) expected: Expected,
}

/// Message bytes of an operation besides its key and value: field tags, lengths, revisions.
const OP_OVERHEAD_BYTES: usize = 32;

/// A transaction under construction. A refused operation leaves it unchanged.
#[derive(Clone, Debug)]
pub struct Txn {
    keyspace: Keyspace,
    limits: Limits,
    compares: Vec<Compare>,
    writes: Vec<EncodedWrite>,
    /// Text of the key → position of its compare, and whether the key is written.
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

    /// Makes the transaction fail when the fence's term is over.
    ///
    /// # Errors
    /// It does not fit, or another term of the same service was added before.
    pub fn fence(&mut self, fence: &Fence) -> Result<&mut Self, TxnError> {
        self.push(
            &fence.key(),
            Expected::CreateRevision(fence.create_revision),
            None,
        )?;
        if !self.fences.contains(fence) {
            self.fences.push(fence.clone());
        }
        Ok(self)
    }

    /// Adds one conditional write.
    ///
    /// # Errors
    /// It does not fit, the key was already used otherwise, or the modify index is 0.
    pub fn add(&mut self, write: &Write) -> Result<&mut Self, TxnError> {
        let key = write.key();
        let expected = match write {
            Write::Create { .. } | Write::RequireAbsent { .. } => Expected::Absent,
            Write::Update { modify_index, .. }
            | Write::Delete { modify_index, .. }
            | Write::RequireUnchanged { modify_index, .. } => unchanged(key, *modify_index)?,
        };
        let value = match write.entity() {
            Some(entity) => Some(encode(key, entity.into())?),
            None => None,
        };
        let operation = (!write.is_compare()).then_some(Operation { value, lease: 0 });
        self.push(key, expected, operation)
    }

    /// Adds every one of `writes`, in order.
    ///
    /// # Errors
    /// They do not fit together, in size or in their compares.
    pub fn add_all<'a>(
        &mut self,
        writes: impl IntoIterator<Item = &'a Write>,
    ) -> Result<&mut Self, TxnError> {
        for write in writes {
            self.add(write)?;
        }
        Ok(self)
    }

    /// Returns the transaction with every one of `writes` added.
    ///
    /// # Errors
    /// They do not fit together, in size or in their compares.
    pub fn with<'a>(
        mut self,
        writes: impl IntoIterator<Item = &'a Write>,
    ) -> Result<Self, TxnError> {
        self.add_all(writes)?;
        Ok(self)
    }

    /// Stores an object that is deleted with `lease`: a new one if `mod_revision` is 0, and otherwise in
    /// the place of the one that was changed then.
    /// # Errors
    /// See [`Self::add`].
    pub fn put_leased<'a>(
        &mut self,
        key: &Key,
        value: impl Into<Value<'a>>,
        lease: i64,
        mod_revision: u64,
    ) -> Result<&mut Self, TxnError> {
        let value = encode(key, value.into())?;
        let expected = match mod_revision {
            0 => Expected::Absent,
            _ => Expected::ModRevision(mod_revision),
        };
        self.push(
            key,
            expected,
            Some(Operation {
                value: Some(value),
                lease,
            }),
        )
    }

    /// Adds everything of `other`, so that both are executed at one revision or not at all. Equal
    /// compares are kept once.
    ///
    /// # Errors
    /// The two do not fit together, in size or in their compares; `self` is unchanged.
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
            self.push(&compare.key, compare.expected, None)?;
        }
        for write in &other.writes {
            let operation = Operation {
                value: write.value.clone(),
                lease: write.lease,
            };
            self.push(&write.key, write.expected, Some(operation))?;
        }
        for fence in &other.fences {
            if !self.fences.contains(fence) {
                self.fences.push(fence.clone());
            }
        }
        Ok(())
    }

    /// Returns the larger number of compares and writes.
    pub fn op_count(&self) -> usize {
        self.compares.len().max(self.writes.len())
    }

    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    pub fn write_count(&self) -> usize {
        self.writes.len()
    }

    /// Returns whether it writes nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns the keys that it compares, each once.
    pub fn compared_keys(&self) -> impl Iterator<Item = &Key> {
        self.compares.iter().map(|compare| &compare.key)
    }

    pub(crate) fn compares(&self) -> &[Compare] {
        &self.compares
    }

    pub(crate) fn writes(&self) -> &[EncodedWrite] {
        &self.writes
    }

    pub(crate) fn carries(&self, fence: &Fence) -> bool {
        self.fences.contains(fence)
    }

    fn push(
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
            self.writes.push(EncodedWrite {
                key: key.clone(),
                text,
                value,
                lease,
                expected,
            });
        }
        Ok(self)
    }

    /// Counts an addition, unless it would exceed a limit.
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
            // Once to compare, once to read the key when the compare fails.
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
