//! Storage systems' volumes that a node mounts for its own allocations, and the attachments that have to
//! come first.
//!
//! Source: the specification of the interface: a volume is attached before it is staged, and an
//! attachment is undone by the same storage system. Ours: a volume that one node, or one writer, uses
//! at a time is given to its earliest holder.

use model::csi::AttachmentState;
use model::job::VolumeRequest;
use model::refusal::{Kind, Refusal};
use model::{
    AllocId, CsiAttachment, CsiAttachmentKey, CsiVolume, CsiVolumeKey, Indexed, NodeId, Timestamp,
};
use placement::csi::holders::{self, Holder};
use placement::csi::plugin;
use state::{AllocView, Entity, Key, Snapshot, Write};

use crate::cluster::csi::CsiRefusal;
use crate::cluster::csi::controller::{self, Ability};
use crate::cluster::csi::detach::CALL_TIME;
use crate::jobs::alloc_node::AllocNode;

/// The reason why a node learns nothing about volumes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountsRefusal {
    /// Also for an allocation that does not exist: a node learns nothing about others.
    #[error(
        "allocation {alloc_id} is not one of node {node_id}: a node mounts volumes for its own allocations"
    )]
    NotOwn { alloc_id: AllocId, node_id: NodeId },
    #[error("allocation {0} has ended: nothing is mounted for it")]
    Ended(AllocId),
}

impl Refusal for MountsRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::NotOwn { .. } => Kind::Denied,
            Self::Ended(_) => Kind::Precondition,
        }
    }
}

/// A volume of an allocation.
#[derive(Clone, Debug)]
pub struct WantedMount {
    /// Its name in the group.
    pub name: String,
    pub key: CsiVolumeKey,
    pub request: VolumeRequest,
    /// `None`: there is no such volume.
    pub volume: Option<CsiVolume>,
    pub progress: Progress,
}

/// The next step before a volume may be mounted.
#[derive(Clone, Debug)]
pub enum Progress {
    /// It may be mounted. The storage system's answer to its attachment, if it has one.
    Ready(std::collections::BTreeMap<String, String>),
    /// It may be mounted once this is committed.
    Take(Box<Write>),
    /// It is to be attached.
    Attach(Box<Attachment>),
    /// The reason for the user.
    Waiting(String),
}

/// An attachment to be made by a call of its plugin, once `writes` are committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    pub key: CsiAttachmentKey,
    /// As `writes` store it.
    pub attachment: CsiAttachment,
    pub writes: Vec<Write>,
    /// The node whose plugin is called.
    pub node: AllocNode,
}

/// Decides on the volumes of an allocation of `node_id`, which is authenticated.
///
/// Shape: ordered by name.
///
/// # Errors
/// The allocation is not the node's, or it has ended. Final only in a fresh snapshot.
pub fn mounts(
    snapshot: &Snapshot,
    node_id: NodeId,
    alloc_id: AllocId,
    now: Timestamp,
) -> Result<Vec<WantedMount>, MountsRefusal> {
    let view = snapshot
        .alloc(alloc_id)
        .filter(|view| view.alloc.node_id == node_id)
        .ok_or(MountsRefusal::NotOwn { alloc_id, node_id })?;
    if view.is_client_terminal() {
        return Err(MountsRefusal::Ended(alloc_id));
    }
    let alloc = &view.alloc;
    let job = snapshot.job_version(&alloc.job_key(), alloc.job_version);
    let group = job.and_then(|job| job.value.task_group(&alloc.task_group));
    let asks = group.into_iter().flat_map(|group| &group.volumes);
    let mounts = asks.filter(|(_, ask)| ask.is_csi()).map(|(name, ask)| {
        let source = ask.source_for(alloc.name_index);
        let key = CsiVolumeKey::new(alloc.namespace.clone(), &*source);
        let stored = snapshot.csi_volume(&key);
        let progress = match stored {
            None => Progress::Waiting("it is not registered (any more)".to_owned()),
            Some(stored) => progress(snapshot, view, ask, stored, now),
        };
        WantedMount {
            name: name.clone(),
            request: ask.clone(),
            volume: stored.map(|stored| stored.value.clone()),
            progress,
            key,
        }
    });
    Ok(mounts.collect())
}

fn progress(
    snapshot: &Snapshot,
    view: &AllocView,
    ask: &VolumeRequest,
    stored: &Indexed<CsiVolume>,
    now: Timestamp,
) -> Progress {
    let (volume, alloc) = (&stored.value, &view.alloc);
    let key = volume.key();
    let own = Holder {
        alloc_id: alloc.id,
        job: alloc.job_key(),
        node_id: alloc.node_id,
        read_only: ask.read_only,
        create_index: view.create_index,
    };
    let all = holders::list(snapshot, &key);
    if let Some(other) = holders::earlier_holder(ask.capability(), &own, &all) {
        return Progress::Waiting(format!(
            "allocation {} on node {} still uses it",
            other.alloc_id, other.node_id
        ));
    }
    let plugin_id = &volume.plugin_id;
    match plugin::attaches(snapshot, plugin_id) {
        Some(false) => Progress::Ready(Default::default()),
        Some(true) => attachment(snapshot, &own, ask, stored, now),
        None => Progress::Waiting(format!(
            "CSI plugin {plugin_id:?} needs a controller, and none is known: start its controller task"
        )),
    }
}

fn attachment(
    snapshot: &Snapshot,
    own: &Holder,
    ask: &VolumeRequest,
    stored: &Indexed<CsiVolume>,
    now: Timestamp,
) -> Progress {
    let volume = &stored.value;
    let key = CsiAttachmentKey {
        volume: volume.key(),
        node_id: own.node_id,
    };
    let existing = snapshot.csi_attachment(&key).map(|stored| &**stored);
    if let Some(progress) = existing.and_then(|existing| known(&key, existing, own, now)) {
        return progress;
    }
    if let Some(reason) = attached_elsewhere(snapshot, &key, ask) {
        return Progress::Waiting(reason);
    }
    let node = snapshot.node(own.node_id);
    let info = node.and_then(|node| node.value.csi_nodes.get(&volume.plugin_id));
    let Some(external_node_id) = info.and_then(|info| Some(info.node.as_ref()?.node_id.clone()))
    else {
        let plugin_id = &volume.plugin_id;
        return Progress::Waiting(format!("CSI plugin {plugin_id:?} is not on this node"));
    };
    let failures = existing.map_or(0, |existing| existing.value.failures);
    let found = controller::find(snapshot, &volume.plugin_id, Ability::Attach, failures);
    let node = match found {
        Ok(node) => node,
        Err(refusal) => return Progress::Waiting(CsiRefusal::to_string(&refusal)),
    };
    let attachment = CsiAttachment {
        plugin_id: volume.plugin_id.clone(),
        external_id: volume.external_id.clone(),
        external_node_id,
        alloc_id: own.alloc_id,
        capability: Some(ask.capability()),
        mount_options: ask.mount_options.or(&volume.mount_options),
        read_only: ask.read_only,
        volume_context: volume.context.clone(),
        state: AttachmentState::Attaching,
        publish_context: Default::default(),
        error: existing.map_or_else(String::new, |existing| existing.value.error.clone()),
        failures,
        retry_at: now.plus(CALL_TIME),
    };
    let writes = attachment_writes(&key, &attachment, existing, stored);
    Progress::Attach(Box::new(Attachment {
        key,
        attachment,
        writes,
        node,
    }))
}

/// Returns the progress with the attachment that the node has; `None`: the volume is to be attached, or
/// attached again.
fn known(
    key: &CsiAttachmentKey,
    existing: &Indexed<CsiAttachment>,
    own: &Holder,
    now: Timestamp,
) -> Option<Progress> {
    let attachment = &existing.value;
    let error = &attachment.error;
    let because = if error.is_empty() { "" } else { ": " };
    match attachment.state {
        AttachmentState::Attached if attachment.alloc_id == own.alloc_id => {
            Some(Progress::Ready(attachment.publish_context.clone()))
        }
        AttachmentState::Attached => {
            // So a detachment that was decided on before conflicts.
            let taken = CsiAttachment {
                alloc_id: own.alloc_id,
                ..attachment.clone()
            };
            Some(Progress::Take(Box::new(Write::Update {
                key: Key::CsiAttachment(key.clone()),
                modify_index: existing.modify_index,
                entity: Entity::CsiAttachment(Box::new(taken)),
            })))
        }
        AttachmentState::Detaching => Some(Progress::Waiting(format!(
            "it is being detached from this node{because}{error}"
        ))),
        AttachmentState::Attaching if attachment.retry_at > now => Some(Progress::Waiting(
            format!("it is being attached{because}{error}"),
        )),
        AttachmentState::Attaching => None,
    }
}

/// Returns the reason to wait for another node's attachment; `None`: there is none.
fn attached_elsewhere(
    snapshot: &Snapshot,
    key: &CsiAttachmentKey,
    ask: &VolumeRequest,
) -> Option<String> {
    let mode = ask.capability().access_mode;
    let is_exclusive = !mode.is_multi_node() || (!ask.read_only && !mode.has_many_writers());
    if !is_exclusive {
        return None;
    }
    let mut others = snapshot.csi_attachments_of(&key.volume);
    let (other, attachment) = others.find(|(other, attachment)| {
        other.node_id != key.node_id && !(mode.is_multi_node() && attachment.value.read_only)
    })?;
    let (node_id, state) = (other.node_id, attachment.value.state.as_str());
    Some(format!("it is still attached to node {node_id} ({state})"))
}

fn attachment_writes(
    key: &CsiAttachmentKey,
    attachment: &CsiAttachment,
    existing: Option<&Indexed<CsiAttachment>>,
    stored: &Indexed<CsiVolume>,
) -> Vec<Write> {
    let entity = Entity::CsiAttachment(Box::new(attachment.clone()));
    let modify_index = existing.map_or(0, |existing| existing.modify_index);
    let mut writes = vec![Write::put(
        Key::CsiAttachment(key.clone()),
        modify_index,
        entity,
    )];
    if existing.is_none() {
        // Attachments of one volume to two nodes compare the same revision, so one of them is first.
        let volume = &stored.value;
        let counted = CsiVolume {
            attach_count: volume.attach_count + 1,
            ..volume.clone()
        };
        writes.push(Write::Update {
            key: Key::CsiVolume(volume.key()),
            modify_index: stored.modify_index,
            entity: Entity::CsiVolume(Box::new(counted)),
        });
    }
    writes
}

/// Decides on the record after a call of the plugin; `None`: it has changed meanwhile.
pub fn concluded(
    snapshot: &Snapshot,
    attachment: &Attachment,
    outcome: Result<std::collections::BTreeMap<String, String>, String>,
    now: Timestamp,
) -> Option<Write> {
    let stored = snapshot.csi_attachment(&attachment.key)?;
    if stored.value != attachment.attachment {
        return None;
    }
    let value = match outcome {
        Ok(publish_context) => CsiAttachment {
            state: AttachmentState::Attached,
            publish_context,
            error: String::new(),
            failures: 0,
            retry_at: now,
            ..stored.value.clone()
        },
        Err(error) => CsiAttachment {
            error,
            failures: stored.value.failures.saturating_add(1),
            retry_at: now,
            ..stored.value.clone()
        },
    };
    Some(Write::Update {
        key: Key::CsiAttachment(attachment.key.clone()),
        modify_index: stored.modify_index,
        entity: Entity::CsiAttachment(Box::new(value)),
    })
}
