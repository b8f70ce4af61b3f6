//! Allocations as of a write: the written side, joined with the other side.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{AllocId, Deployment, DeploymentId};
use state::{AllocView, Change, Entity, Key, Snapshot};
use store::RevisionChanges;

/// Objects as of a write, where the replica differs.
#[derive(Clone, Debug, Default)]
pub struct PastObjects {
    pub allocs: BTreeMap<AllocId, AllocView>,
    pub deployments: BTreeMap<DeploymentId, Deployment>,
}

impl PastObjects {
    /// Tells whether an allocation was a canary of a group that was not promoted yet.
    pub(crate) fn is_canary(&self, snapshot: &Snapshot, view: &AllocView) -> bool {
        let Some(id) = view.alloc.deployment_id.filter(|_| view.alloc.canary) else {
            return false;
        };
        let then = self.deployments.get(&id);
        let deployment = then.or_else(|| snapshot.deployment(id).map(|found| &found.value));
        let group = deployment.and_then(|found| found.groups.get(&*view.alloc.task_group));
        group.is_some_and(|group| !group.promoted)
    }
}

pub(crate) fn alloc_id(key: &Key) -> Option<AllocId> {
    match key {
        Key::Alloc(id) | Key::AllocClient(id) => Some(*id),
        _ => None,
    }
}

/// Tells whether a write created an allocation.
pub(crate) fn is_created(written: &RevisionChanges, id: AllocId) -> bool {
    written.changes.iter().any(|change| {
        matches!(change, Change::Put { key: Key::Alloc(put), create_index, modify_index, .. }
            if *put == id && create_index == modify_index)
    })
}

/// Returns an allocation as of a write.
pub(crate) fn alloc_view(
    id: AllocId,
    written: &RevisionChanges,
    snapshot: &Snapshot,
    past: &PastObjects,
) -> Option<AllocView> {
    let known = if is_created(written, id) {
        // No node has reported it yet.
        None
    } else {
        past.allocs.get(&id).or_else(|| snapshot.alloc(id)).cloned()
    };
    overlay(id, written, known)
}

/// Replaces the sides of an allocation that were written.
fn overlay(id: AllocId, written: &RevisionChanges, known: Option<AllocView>) -> Option<AllocView> {
    let mut view = known;
    for change in &written.changes {
        let Change::Put {
            key,
            entity,
            create_index,
            modify_index,
        } = change
        else {
            continue;
        };
        match entity {
            Entity::Alloc(alloc) if alloc_id(key) == Some(id) => {
                let alloc = Arc::new(alloc.as_ref().clone());
                let view = view.get_or_insert_with(|| AllocView {
                    alloc: Arc::clone(&alloc),
                    create_index: *create_index,
                    alloc_modify_index: *modify_index,
                    client: None,
                    client_modify_index: 0,
                });
                view.alloc = alloc;
                view.alloc_modify_index = *modify_index;
            }
            Entity::AllocClient(client) if alloc_id(key) == Some(id) => {
                let view = view.as_mut()?;
                view.client = Some(Arc::new(client.as_ref().clone()));
                view.client_modify_index = *modify_index;
            }
            _ => {}
        }
    }
    view
}
