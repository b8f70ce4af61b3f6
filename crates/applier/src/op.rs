//! One operation of a transaction: a write with its compare, or a compare alone.

use model::AllocId;
use state::{Entity, Key};

/// A write names what it is built on, so it cannot be made without a compare.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// The key must not exist.
    Create { key: Key, entity: Entity },
    /// The key's mod revision must be `modify_index`.
    Update {
        key: Key,
        entity: Entity,
        modify_index: u64,
    },
    /// The key's mod revision must be `modify_index` (0: it must not exist); it is not written.
    Check { key: Key, modify_index: u64 },
}

impl Op {
    pub fn key(&self) -> &Key {
        match self {
            Self::Create { key, .. } | Self::Update { key, .. } | Self::Check { key, .. } => key,
        }
    }

    /// Returns what is written; `None` for a compare alone.
    pub fn entity(&self) -> Option<&Entity> {
        match self {
            Self::Create { entity, .. } | Self::Update { entity, .. } => Some(entity),
            Self::Check { .. } => None,
        }
    }

    /// Returns the allocation that this creates.
    pub fn created_alloc(&self) -> Option<AllocId> {
        match self {
            Self::Create {
                key: Key::Alloc(id),
                ..
            } => Some(*id),
            _ => None,
        }
    }
}
