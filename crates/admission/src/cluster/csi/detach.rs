//! The end of attachments: a persisted state machine that any gateway drives.
//!
//! An attachment without a holder becomes `detaching`, the plugin is called, and the record is deleted.
//! Each step is conditional on the last, and a step in progress has a time before which no other gateway
//! repeats it.

use std::time::Duration;

use model::csi::AttachmentState;
use model::{AllocId, CsiAttachment, CsiAttachmentKey, CsiVolumeKey, Indexed, NodeId, Timestamp};
use placement::csi::holders;
use state::{Entity, Key, Snapshot, Write};

use super::CsiRefusal;

/// The time that a call of a plugin may take, with the answer's way: its deadline and some seconds.
pub const CALL_TIME: Duration = Duration::from_secs(40);
/// The pause after the first failure; it doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Returns the pause after the `failures`-th failure in a row, counted from 1.
fn pause(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
    let pause = FIRST_PAUSE.saturating_mul(doubled.unwrap_or(u32::MAX));
    pause.min(LONGEST_PAUSE)
}

/// An attachment to be undone by a call of its plugin, once `write` is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Detachment {
    pub key: CsiAttachmentKey,
    /// As `write` stores it.
    pub attachment: CsiAttachment,
    pub write: Write,
}

/// Returns the attachments to undo now, at most `limit`, ordered by volume and node.
pub fn due(snapshot: &Snapshot, now: Timestamp, limit: usize) -> Vec<Detachment> {
    let all = snapshot.csi_attachments();
    let due = all.filter(|(key, stored)| is_due(snapshot, key, &stored.value, now));
    let due = due.map(|(key, stored)| {
        let attachment = CsiAttachment {
            state: AttachmentState::Detaching,
            retry_at: now.plus(CALL_TIME),
            ..stored.value.clone()
        };
        Detachment {
            key: key.clone(),
            write: update(key, stored, attachment.clone()),
            attachment,
        }
    });
    due.take(limit).collect()
}

fn is_due(
    snapshot: &Snapshot,
    key: &CsiAttachmentKey,
    attachment: &CsiAttachment,
    now: Timestamp,
) -> bool {
    match attachment.state {
        // A call that attaches may be in progress until then.
        AttachmentState::Attaching => {
            attachment.retry_at <= now && !is_held(snapshot, &key.volume, key.node_id)
        }
        AttachmentState::Attached => !is_held(snapshot, &key.volume, key.node_id),
        AttachmentState::Detaching => attachment.retry_at <= now,
    }
}

/// Tells whether an allocation on the node holds the volume.
fn is_held(snapshot: &Snapshot, volume: &CsiVolumeKey, node_id: NodeId) -> bool {
    let mut holders = holders::of(snapshot, volume);
    holders.any(|(view, _)| view.alloc.node_id == node_id)
}

/// Decides on the record after a call of the plugin; `None`: another gateway goes on with it.
pub fn concluded(
    snapshot: &Snapshot,
    detachment: &Detachment,
    outcome: Result<(), String>,
    now: Timestamp,
) -> Option<Write> {
    let stored = snapshot.csi_attachment(&detachment.key)?;
    if stored.value != detachment.attachment {
        return None;
    }
    Some(match outcome {
        Ok(()) => Write::Delete {
            key: Key::CsiAttachment(detachment.key.clone()),
            modify_index: stored.modify_index,
        },
        Err(error) => {
            let failures = stored.value.failures.saturating_add(1);
            let failed = CsiAttachment {
                error,
                failures,
                retry_at: now.plus(pause(failures)),
                ..stored.value.clone()
            };
            update(&detachment.key, stored, failed)
        }
    })
}

/// Decides on the request to detach a volume from a node. `None`: it is not attached there.
///
/// # Errors
/// There is no such volume, or an allocation on the node uses it.
pub fn request(snapshot: &Snapshot, key: &CsiAttachmentKey) -> Result<Option<Write>, CsiRefusal> {
    let volume = &key.volume;
    let Some(stored) = snapshot.csi_attachment(key) else {
        return match snapshot.csi_volume(volume) {
            Some(_) => Ok(None),
            None => Err(CsiRefusal::NoVolume(volume.id.to_string())),
        };
    };
    let holders =
        holders::of(snapshot, volume).filter(|(view, _)| view.alloc.node_id == key.node_id);
    let allocs: Vec<AllocId> = holders.map(|(view, _)| view.alloc.id).collect();
    if !allocs.is_empty() {
        return Err(CsiRefusal::InUse {
            id: volume.id.to_string(),
            allocs: allocs.iter().map(AllocId::to_string).collect(),
        });
    }
    let attachment = CsiAttachment {
        state: AttachmentState::Detaching,
        // A call that attaches may be in progress until then.
        retry_at: stored.value.retry_at,
        ..stored.value.clone()
    };
    Ok(Some(update(key, stored, attachment)))
}

fn update(
    key: &CsiAttachmentKey,
    stored: &Indexed<CsiAttachment>,
    attachment: CsiAttachment,
) -> Write {
    Write::Update {
        key: Key::CsiAttachment(key.clone()),
        modify_index: stored.modify_index,
        entity: Entity::CsiAttachment(Box::new(attachment)),
    }
}
