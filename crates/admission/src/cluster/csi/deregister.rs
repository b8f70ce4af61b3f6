//! Deregistration and deletion of volumes that no allocation uses, in two steps.

use model::{CsiVolume, CsiVolumeKey, Indexed};
use placement::csi::holders;
use state::{Entity, Key, Snapshot, Write};

use super::CsiRefusal;
use crate::cluster::deletion::{self, Deletion};
use crate::cluster::referenced::MAX_NAMED;

/// Decides on the next step of deregistering a volume; `None`: there is none of that id. With `force`,
/// attachments that no allocation uses are forgotten.
///
/// # Errors
/// Allocations use it, or it is attached.
pub fn deregister(
    snapshot: &Snapshot,
    key: &CsiVolumeKey,
    force: bool,
) -> Result<Option<Deletion<CsiRefusal>>, CsiRefusal> {
    let Some(stored) = snapshot.csi_volume(key) else {
        return Ok(None);
    };
    let in_use = in_use(snapshot, key, force);
    let delete = || deletions(snapshot, key, stored);
    deletion::next_step(stored.value.deleting, in_use, |it| mark(stored, it), delete).map(Some)
}

/// Decides on the next step of deleting a volume, which the storage system deletes between mark and
/// deregistration; `None`: there is none of that id. `released` is the storage system's answer since the mark;
/// `None`: it was not asked.
///
/// # Errors
/// Allocations use it, or it is attached.
pub fn delete<R>(
    snapshot: &Snapshot,
    key: &CsiVolumeKey,
    released: Option<Result<(), R>>,
) -> Result<Option<Deletion<R>>, CsiRefusal>
where
    R: From<CsiRefusal>,
{
    let Some(stored) = snapshot.csi_volume(key) else {
        return Ok(None);
    };
    let step = match (deregister(snapshot, key, false)?, released) {
        (None, _) => return Ok(None),
        (Some(Deletion::TakeBack { write, refusal }), _) => Deletion::TakeBack {
            write,
            refusal: refusal.into(),
        },
        (Some(Deletion::Delete(writes)), Some(Ok(()))) => Deletion::Delete(writes),
        (Some(Deletion::Delete(_)), Some(Err(refusal))) => Deletion::TakeBack {
            write: mark(stored, false),
            refusal,
        },
        // An earlier deletion left its mark.
        (Some(Deletion::Delete(_)), None) => Deletion::Mark(mark(stored, true)),
        (Some(Deletion::Mark(write)), _) => Deletion::Mark(write),
    };
    Ok(Some(step))
}

/// Returns the volume that the storage system may delete now: it is marked, so it gets no new users, and it has
/// none from before the mark. A volume that is registered again loses its mark.
pub fn releasable<'a>(snapshot: &'a Snapshot, key: &CsiVolumeKey) -> Option<&'a CsiVolume> {
    let stored = snapshot.csi_volume(key)?;
    let is_free = stored.value.deleting && in_use(snapshot, key, false).is_none();
    is_free.then_some(&stored.value)
}

/// Returns the write that sets or removes the mark of a deletion.
fn mark(stored: &Indexed<CsiVolume>, deleting: bool) -> Write {
    let volume = CsiVolume {
        deleting,
        ..stored.value.clone()
    };
    Write::Update {
        key: Key::CsiVolume(volume.key()),
        modify_index: stored.modify_index,
        entity: Entity::CsiVolume(Box::new(volume)),
    }
}

fn in_use(snapshot: &Snapshot, key: &CsiVolumeKey, force: bool) -> Option<CsiRefusal> {
    let id = key.id.to_string();
    let users = holders::of(snapshot, key).take(MAX_NAMED);
    let allocs: Vec<String> = users.map(|(view, _)| view.alloc.id.to_string()).collect();
    if !allocs.is_empty() {
        return Some(CsiRefusal::InUse { id, allocs });
    }
    let attached = snapshot.csi_attachments_of(key).next();
    let attached = attached.filter(|_| !force);
    attached.map(|(attachment, _)| CsiRefusal::Attached {
        id,
        node_id: attachment.node_id,
    })
}

fn deletions(snapshot: &Snapshot, key: &CsiVolumeKey, stored: &Indexed<CsiVolume>) -> Vec<Write> {
    let attachments = snapshot.csi_attachments_of(key);
    let attachments = attachments.map(|(key, attachment)| Write::Delete {
        key: Key::CsiAttachment(key.clone()),
        modify_index: attachment.modify_index,
    });
    let volume = Write::Delete {
        key: Key::CsiVolume(key.clone()),
        modify_index: stored.modify_index,
    };
    [volume].into_iter().chain(attachments).collect()
}
