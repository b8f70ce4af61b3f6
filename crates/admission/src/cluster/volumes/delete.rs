//! Deletion of volumes that no allocation uses, with their claims.

use model::{Indexed, Volume, VolumeKey};
use placement::volumes;
use state::{Entity, Key, Snapshot, Write};

use super::claims::delete_claim;
use super::request::VolumeRefusal;
use crate::cluster::deletion::{self, Deletion};
use crate::cluster::referenced::MAX_NAMED;

/// The largest number of claims that are deleted with a volume; the cluster-controller deletes the
/// others.
const MAX_CLAIMS: usize = 500;

/// Decides on the next step of deleting a volume; `None`: there is none of that name.
///
/// # Errors
/// Allocations use it.
pub fn delete(
    snapshot: &Snapshot,
    key: &VolumeKey,
) -> Result<Option<Deletion<VolumeRefusal>>, VolumeRefusal> {
    let Some(stored) = snapshot.volume(key) else {
        return Ok(None);
    };
    let in_use = in_use(snapshot, &stored.value);
    let mark = |deleting| marked(stored, deleting);
    let delete = || deletions(snapshot, stored);
    deletion::next_step(stored.value.deleting, in_use, mark, delete).map(Some)
}

fn in_use(snapshot: &Snapshot, volume: &Volume) -> Option<VolumeRefusal> {
    let users = volumes::users(snapshot, volume).take(MAX_NAMED);
    let allocs: Vec<String> = users.map(|view| view.alloc.id.to_string()).collect();
    let name = volume.name.clone();
    (!allocs.is_empty()).then_some(VolumeRefusal::InUse { name, allocs })
}

fn deletions(snapshot: &Snapshot, stored: &Indexed<Volume>) -> Vec<Write> {
    let volume = &stored.value;
    let claims = snapshot.volume_claims();
    let claims = claims.filter(|claim| claim.value.volume_id == volume.id);
    let claims = claims.take(MAX_CLAIMS).map(|claim| delete_claim(claim));
    let write = Write::Delete {
        key: Key::Volume(volume.key()),
        modify_index: stored.modify_index,
    };
    [write].into_iter().chain(claims).collect()
}

fn marked(stored: &Indexed<Volume>, deleting: bool) -> Write {
    let volume = Volume {
        deleting,
        ..stored.value.clone()
    };
    Write::Update {
        key: Key::Volume(volume.key()),
        modify_index: stored.modify_index,
        entity: Entity::Volume(Box::new(volume)),
    }
}
