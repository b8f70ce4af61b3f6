//! Namespaces and node pools alike: objects that jobs join by name.

use std::sync::Arc;

use model::{Indexed, Namespace, NodePool};
use state::{Entity, Key, Snapshot, Write};

use super::change::OneWrite;
use super::deletion::{self, Deletion};

/// The largest number of an object's users that a refusal names.
pub(super) const MAX_NAMED: usize = 5;

/// An object that jobs join by its name, and that is deleted in two steps.
pub(super) trait Referenced: Clone + PartialEq + Sized {
    fn name(&self) -> &str;
    fn key(name: &str) -> Key;
    fn find<'s>(snapshot: &'s Snapshot, name: &str) -> Option<&'s Arc<Indexed<Self>>>;
    fn into_entity(self) -> Entity;
    fn is_marked(&self) -> bool;
    /// Returns the object with the mark of its deletion, or without it.
    fn marked(self, deleting: bool) -> Self;
}

impl Referenced for Namespace {
    fn name(&self) -> &str {
        &self.name
    }

    fn key(name: &str) -> Key {
        Key::Namespace(name.to_owned())
    }

    fn find<'s>(snapshot: &'s Snapshot, name: &str) -> Option<&'s Arc<Indexed<Self>>> {
        snapshot.namespace(name)
    }

    fn into_entity(self) -> Entity {
        Entity::Namespace(Box::new(self))
    }

    fn is_marked(&self) -> bool {
        self.deleting
    }

    fn marked(self, deleting: bool) -> Self {
        Self { deleting, ..self }
    }
}

impl Referenced for NodePool {
    fn name(&self) -> &str {
        &self.name
    }

    fn key(name: &str) -> Key {
        Key::NodePool(name.to_owned())
    }

    fn find<'s>(snapshot: &'s Snapshot, name: &str) -> Option<&'s Arc<Indexed<Self>>> {
        snapshot.node_pool(name)
    }

    fn into_entity(self) -> Entity {
        Entity::NodePool(Box::new(self))
    }

    fn is_marked(&self) -> bool {
        self.deleting
    }

    fn marked(self, deleting: bool) -> Self {
        Self { deleting, ..self }
    }
}

/// Decides on storing `value` in place of the object of that name.
pub(super) fn upsert<T: Referenced>(snapshot: &Snapshot, value: &T) -> OneWrite {
    match T::find(snapshot, value.name()) {
        Some(stored) if stored.value == *value => OneWrite::Unchanged {
            modify_index: stored.modify_index,
        },
        Some(stored) => OneWrite::Write(Box::new(update(stored, value.clone()))),
        None => OneWrite::Write(Box::new(create(value.clone()))),
    }
}

/// Decides on the next step of a deletion; `in_use` refuses it.
///
/// # Errors
/// The object is in use and not marked.
pub(super) fn delete<T: Referenced, R>(
    stored: &Indexed<T>,
    in_use: Option<R>,
) -> Result<Deletion<R>, R> {
    let mark = |deleting| update(stored, stored.value.clone().marked(deleting));
    let delete = || {
        vec![Write::Delete {
            key: T::key(stored.value.name()),
            modify_index: stored.modify_index,
        }]
    };
    deletion::next_step(stored.value.is_marked(), in_use, mark, delete)
}

pub(super) fn create<T: Referenced>(value: T) -> Write {
    Write::Create {
        key: T::key(value.name()),
        entity: value.into_entity(),
    }
}

pub(super) fn update<T: Referenced>(stored: &Indexed<T>, value: T) -> Write {
    Write::Update {
        key: T::key(stored.value.name()),
        modify_index: stored.modify_index,
        entity: value.into_entity(),
    }
}

/// Returns the compare of a transaction that joins the object.
pub(super) fn unchanged<T: Referenced>(stored: &Indexed<T>) -> Write {
    Write::RequireUnchanged {
        key: T::key(stored.value.name()),
        modify_index: stored.modify_index,
    }
}
