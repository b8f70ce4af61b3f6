//! One watched change: a typed key, its object and its revisions.

use crate::entity::Entity;
use crate::key::Key;

/// The change of one key, as a watch reports it.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// `entity` is of the kind that `key` names; its own id field, if any, is already filled in.
    Put {
        key: Key,
        entity: Entity,
        create_index: u64,
        modify_index: u64,
    },
    Delete {
        key: Key,
    },
}
