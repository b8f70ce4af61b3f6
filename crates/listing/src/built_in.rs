//! Namespaces and node pools that exist: the stored ones, and those that exist without being stored.

use std::borrow::Cow;

use model::{Indexed, Namespace, NodePool};
use state::Snapshot;

/// Returns all namespaces, not ordered. One that is not stored has the index 0.
pub fn namespaces(snapshot: &Snapshot) -> impl Iterator<Item = Cow<'_, Indexed<Namespace>>> {
    let stored = snapshot.namespaces().map(|stored| Cow::Borrowed(&**stored));
    let is_stored = snapshot.namespace(Namespace::DEFAULT).is_some();
    let default = (!is_stored).then(|| unstored(Namespace::built_in()));
    default.into_iter().chain(stored)
}

/// Returns a namespace. One that is not stored has the index 0.
pub fn namespace<'s>(snapshot: &'s Snapshot, name: &str) -> Option<Cow<'s, Indexed<Namespace>>> {
    match snapshot.namespace(name) {
        Some(stored) => Some(Cow::Borrowed(stored)),
        None => (name == Namespace::DEFAULT).then(|| unstored(Namespace::built_in())),
    }
}

/// Returns all node pools, not ordered. One that is built in, and so not stored, has the index 0.
pub fn node_pools(snapshot: &Snapshot) -> impl Iterator<Item = Cow<'_, Indexed<NodePool>>> {
    let stored = snapshot.node_pools().map(|stored| Cow::Borrowed(&**stored));
    NodePool::built_in().map(unstored).into_iter().chain(stored)
}

/// Returns a node pool. One that is built in, and so not stored, has the index 0.
pub fn node_pool<'s>(snapshot: &'s Snapshot, name: &str) -> Option<Cow<'s, Indexed<NodePool>>> {
    let mut built_in = NodePool::built_in().into_iter();
    if let Some(pool) = built_in.find(|pool| pool.name == name) {
        return Some(unstored(pool));
    }
    snapshot
        .node_pool(name)
        .map(|stored| Cow::Borrowed(&**stored))
}

fn unstored<T: Clone>(value: T) -> Cow<'static, Indexed<T>> {
    Cow::Owned(Indexed {
        create_index: 0,
        modify_index: 0,
        value,
    })
}
