//! The loop that detaches volumes which no allocation on their node uses any more.
//!
//! Every gateway runs it. A gateway takes an attachment by a conditional write that keeps the others off
//! for the time of one call, so of two gateways one calls the plugin. What a gateway that dies leaves
//! is taken by another one after that time.

use std::sync::Arc;
use std::time::Duration;

use ::csi::Method;
use ::csi::v1::{ControllerUnpublishVolumeRequest, ControllerUnpublishVolumeResponse};
use admission::cluster::csi::controller::{self, Ability};
use admission::cluster::csi::detach::{self, Detachment};
use node_calls::plugin;
use store::Commit;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::csi::conclude;
use crate::node_gateway::NodeGateway;

/// The interval of the scan. An allocation elsewhere may wait for it.
const INTERVAL: Duration = Duration::from_secs(2);
/// Calls of plugins at a time: storage systems limit their callers.
const CALLS_MAX: usize = 8;

/// Runs until stopped.
pub(crate) async fn run(gateway: Arc<NodeGateway>, stop: CancellationToken) {
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
        while calls.try_join_next().is_some() {}
        let free = CALLS_MAX.saturating_sub(calls.len());
        let core = &gateway.core;
        // The replica's state may be old; most clusters have no attachments at all.
        if free == 0 || core.replica.snapshot().csi_attachments().next().is_none() {
            continue;
        }
        let Ok(snapshot) = core.fresh().await else {
            continue;
        };
        for detachment in detach::due(&snapshot, core.now(), free) {
            let taken = core.commit(std::slice::from_ref(&detachment.write), core.deadline());
            match taken.await {
                Ok(Commit::Done { revision }) => {
                    let gateway = Arc::clone(&gateway);
                    calls.spawn(async move { detach(&gateway, &detachment, revision).await });
                }
                // Another gateway was first, or an allocation took it.
                Ok(Commit::Conflict(_)) => {}
                Err(error) => {
                    let error = error.message();
                    warn!(error, "cannot begin to detach a volume; retrying");
                }
            }
        }
    }
}

async fn detach(gateway: &NodeGateway, detachment: &Detachment, revision: u64) {
    let core = &gateway.core;
    let (volume_id, node_id) = (&detachment.key.volume.id, detachment.key.node_id);
    let attachment = &detachment.attachment;
    let outcome = async {
        let waited = core.wait_for(revision, core.deadline()).await;
        let snapshot = waited.map_err(|error| error.message())?;
        let (plugin_id, tries) = (&attachment.plugin_id, attachment.failures);
        let node = controller::find(&snapshot, plugin_id, Ability::Attach, tries);
        let node = node.map_err(|refusal| refusal.to_string())?;
        let request = ControllerUnpublishVolumeRequest {
            volume_id: attachment.external_id.clone(),
            node_id: attachment.external_node_id.clone(),
            secrets: Default::default(),
        };
        let about = (plugin_id.as_str(), Method::ControllerUnpublishVolume);
        let called = plugin::call::<_, ControllerUnpublishVolumeResponse>(
            &gateway.node_calls,
            &node,
            about,
            &request,
        );
        match called.await {
            Ok(_) => Ok(()),
            // The storage system does not know the volume or the node (any more).
            Err(status) if status.code() == tonic::Code::NotFound => Ok(()),
            Err(status) => Err(status.message().to_owned()),
        }
    };
    let outcome: Result<(), String> = outcome.await;
    match &outcome {
        Ok(()) => info!(%volume_id, %node_id, "volume detached"),
        Err(error) => warn!(%volume_id, %node_id, error, "cannot detach a volume; retrying"),
    }
    let stored = conclude(core, |snapshot, now| {
        detach::concluded(snapshot, detachment, outcome.clone(), now)
    });
    match stored.await {
        Ok(true) => {}
        Ok(false) => debug!(%volume_id, %node_id, "another gateway goes on with the attachment"),
        Err(error) => {
            let error = error.message();
            warn!(%volume_id, error, "cannot store the end of an attachment; it is repeated");
        }
    }
}
