//! Storage systems' volumes: what a node mounts, and attachments before it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::csi::Method;
use ::csi::capability::Use;
use ::csi::v1::{ControllerPublishVolumeRequest, ControllerPublishVolumeResponse};
use admission::nodes::csi::{self, Attachment, Progress, WantedMount};
use gateway_core::{Core, Error};
use model::{AllocId, CsiAttachment, NodeId};
use node_calls::plugin;
use proto::internal::v1::{CsiMount, CsiMountsRequest, CsiMountsResponse};
use state::{Snapshot, Write};
use store::Commit;
use tracing::{Instrument as _, info, warn};

use crate::node_gateway::NodeGateway;

/// The time that a node waits for an attachment in one call. It asks again.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Answers a request of an authenticated node.
///
/// # Errors
/// The allocation is not the node's, or the store does not answer.
pub(crate) async fn mounts(
    gateway: &Arc<NodeGateway>,
    node_id: NodeId,
    request: &CsiMountsRequest,
) -> Result<CsiMountsResponse, Error> {
    let invalid =
        |error: model::ids::InvalidId| Error::invalid_field("alloc_id", error.to_string());
    let alloc_id: AllocId = request.alloc_id.parse().map_err(invalid)?;
    let core = &gateway.core;
    // An attachment depends on every holder.
    let snapshot = core.fresh().await?;
    let wanted = csi::mounts(&snapshot, node_id, alloc_id, core.now())?;
    let mut mounts = Vec::with_capacity(wanted.len());
    for mount in wanted {
        let progress = match &mount.progress {
            Progress::Take(write) => taken(core, write).await?,
            Progress::Attach(attachment) => attached(gateway, attachment).await?,
            Progress::Ready(context) => Ok(context.clone()),
            Progress::Waiting(reason) => Err(reason.clone()),
        };
        mounts.push(to_wire(&mount, progress));
    }
    Ok(CsiMountsResponse { mounts })
}

type Answer = Result<BTreeMap<String, String>, String>;

/// Notes that the allocation uses an attachment, before the node does.
async fn taken(core: &Core, write: &Write) -> Result<Answer, Error> {
    let context = match write.entity() {
        Some(state::Entity::CsiAttachment(attachment)) => attachment.publish_context.clone(),
        _ => BTreeMap::new(),
    };
    let commit = core
        .commit(std::slice::from_ref(write), core.deadline())
        .await?;
    Ok(match commit {
        Commit::Done { .. } => Ok(context),
        Commit::Conflict(_) => Err("its attachment has changed".to_owned()),
    })
}

/// Attaches a volume. The call goes on when the node no longer waits for it.
async fn attached(gateway: &Arc<NodeGateway>, attachment: &Attachment) -> Result<Answer, Error> {
    let core = &gateway.core;
    match core.commit(&attachment.writes, core.deadline()).await? {
        Commit::Done { revision } => {
            core.wait_for(revision, core.deadline()).await?;
        }
        Commit::Conflict(_) => return Ok(Err("another volume is attached first".to_owned())),
    }
    let (owned, attachment) = (Arc::clone(gateway), attachment.clone());
    let attaching = async move { attach(&owned, &attachment).await };
    let attaching = tokio::spawn(attaching.in_current_span());
    match tokio::time::timeout(ANSWER_LIMIT, attaching).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) | Err(_) => Ok(Err("it is being attached".to_owned())),
    }
}

async fn attach(gateway: &NodeGateway, attachment: &Attachment) -> Answer {
    let value = &attachment.attachment;
    let request = publish_request(value);
    let called = plugin::call::<_, ControllerPublishVolumeResponse>(
        &gateway.node_calls,
        &attachment.node,
        (&value.plugin_id, Method::ControllerPublishVolume),
        &request,
    );
    let outcome: Answer = match called.await {
        Ok(response) => Ok(response.publish_context.into_iter().collect()),
        Err(status) => Err(status.message().to_owned()),
    };
    let (volume_id, node_id) = (&attachment.key.volume.id, attachment.key.node_id);
    match &outcome {
        Ok(_) => info!(%volume_id, %node_id, "volume attached"),
        Err(error) => warn!(%volume_id, %node_id, error, "cannot attach a volume"),
    }
    let stored = conclude(&gateway.core, |snapshot, now| {
        csi::concluded(snapshot, attachment, outcome.clone(), now)
    });
    match stored.await {
        Ok(true) => outcome,
        Ok(false) => Err("its attachment has changed".to_owned()),
        Err(error) => Err(error.message()),
    }
}

fn publish_request(attachment: &CsiAttachment) -> ControllerPublishVolumeRequest {
    let usage = attachment.capability.map(|capability| Use {
        access_mode: capability.access_mode.as_str().to_owned(),
        attachment_mode: capability.attachment_mode.as_str().to_owned(),
        fs_type: attachment.mount_options.fs_type.clone(),
        mount_flags: attachment.mount_options.mount_flags.clone(),
    });
    ControllerPublishVolumeRequest {
        volume_id: attachment.external_id.clone(),
        node_id: attachment.external_node_id.clone(),
        volume_capability: usage.map(|usage| usage.to_message()),
        readonly: attachment.read_only,
        secrets: Default::default(),
        volume_context: attachment.volume_context.clone().into_iter().collect(),
    }
}

/// Writes the record after a call of a plugin. Returns `false` if it has changed meanwhile.
pub(crate) async fn conclude(
    core: &Core,
    decide: impl Fn(&Snapshot, model::Timestamp) -> Option<Write>,
) -> Result<bool, Error> {
    let snapshot = core.fresh().await?;
    let Some(write) = decide(&snapshot, core.now()) else {
        return Ok(false);
    };
    let commit = core.commit(&[write], core.deadline()).await?;
    Ok(matches!(commit, Commit::Done { .. }))
}

fn to_wire(mount: &WantedMount, progress: Answer) -> CsiMount {
    let (waiting, context) = match progress {
        Ok(context) => (String::new(), context),
        Err(reason) => (reason, BTreeMap::new()),
    };
    let capability = mount.request.capability();
    let volume = mount.volume.clone().unwrap_or_default();
    let options = mount.request.mount_options.or(&volume.mount_options);
    CsiMount {
        name: mount.name.clone(),
        namespace: mount.key.namespace.to_string(),
        volume_id: mount.key.id.to_string(),
        external_id: volume.external_id,
        plugin_id: volume.plugin_id,
        access_mode: capability.access_mode.as_str().to_owned(),
        attachment_mode: capability.attachment_mode.as_str().to_owned(),
        read_only: mount.request.read_only,
        fs_type: options.fs_type,
        mount_flags: options.mount_flags,
        context: volume.context.into_iter().collect(),
        publish_context: context.into_iter().collect(),
        secrets: Default::default(),
        waiting,
    }
}
