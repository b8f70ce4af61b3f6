//! The create and modify index of an object that is put.

use std::sync::Arc;

use model::Indexed;

#[derive(Clone, Copy)]
pub(super) struct Indexes {
    pub(super) create: u64,
    pub(super) modify: u64,
}

impl Indexes {
    pub(super) fn row<T>(self, value: T) -> Arc<Indexed<T>> {
        Arc::new(self.indexed(value))
    }

    pub(super) fn indexed<T>(self, value: T) -> Indexed<T> {
        Indexed {
            create_index: self.create,
            modify_index: self.modify,
            value,
        }
    }
}
