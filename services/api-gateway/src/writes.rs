//! What a decision wants written, with what it expects to find.
//!
//! The deciding modules return these; [`into_txn`] makes the one transaction of them.

use state::{Entity, Key};
use store::{Txn, TxnError};

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// The key must not exist.
    Create { key: Key, entity: Entity },
    /// The key must not have changed since `modify_index`.
    Update {
        key: Key,
        modify_index: u64,
        entity: Entity,
    },
    /// The key must not have changed since `modify_index`.
    Delete { key: Key, modify_index: u64 },
    /// Writes nothing, but the key must not have changed since `modify_index`.
    RequireUnchanged { key: Key, modify_index: u64 },
    /// Writes nothing, but the key must not exist.
    RequireAbsent { key: Key },
}

impl Write {
    /// Returns the key that is written or looked at.
    pub fn key(&self) -> &Key {
        match self {
            Self::Create { key, .. }
            | Self::Update { key, .. }
            | Self::Delete { key, .. }
            | Self::RequireUnchanged { key, .. }
            | Self::RequireAbsent { key } => key,
        }
    }

    /// Adds it to `txn`.
    ///
    /// # Errors
    /// It does not fit.
    pub fn add_to(&self, txn: &mut Txn) -> Result<(), TxnError> {
        match self {
            Self::Create { key, entity } => txn.create(key, entity),
            Self::Update {
                key,
                modify_index,
                entity,
            } => txn.update(key, *modify_index, entity),
            Self::Delete { key, modify_index } => txn.delete(key, *modify_index),
            Self::RequireUnchanged { key, modify_index } => {
                txn.require_unchanged(key, *modify_index)
            }
            Self::RequireAbsent { key } => txn.require_absent(key),
        }
        .map(|_| ())
    }
}

/// Adds every write to `txn`.
///
/// # Errors
/// They do not fit together, in size or in what they require.
pub fn into_txn<'a>(
    mut txn: Txn,
    writes: impl IntoIterator<Item = &'a Write>,
) -> Result<Txn, TxnError> {
    for write in writes {
        write.add_to(&mut txn)?;
    }
    Ok(txn)
}
