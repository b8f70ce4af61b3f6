//! Storage systems' volumes of allocations, from the current gateway.

use std::sync::Arc;

use csi_node::Mount;
use model::AllocId;
use proto::internal::v1::{CsiMount, CsiMountsRequest};
use service_kit::request;
use task_drivers::driver::BoxFuture;
use task_runner::{VolumeSource, WantedVolume};

use crate::sources::{CALL_TIMEOUT, GatewaySources};

impl VolumeSource for GatewaySources {
    fn volumes(&self, alloc_id: AllocId) -> BoxFuture<'static, Result<Vec<WantedVolume>, String>> {
        let message = CsiMountsRequest {
            node_id: self.node_id.clone(),
            secret: self.secret.clone(),
            alloc_id: alloc_id.to_string(),
        };
        let gateways = Arc::clone(&self.gateways);
        Box::pin(async move {
            let asked = gateways
                .call(async |mut client| client.csi_mounts(request(message, CALL_TIMEOUT)).await)
                .await;
            let answer = asked.map_err(|status| status.message().to_owned())?;
            Ok(answer.mounts.into_iter().map(read).collect())
        })
    }
}

fn read(wire: CsiMount) -> WantedVolume {
    WantedVolume {
        waiting: Some(wire.waiting).filter(|reason| !reason.is_empty()),
        mount: Mount {
            name: wire.name,
            namespace: wire.namespace,
            volume_id: wire.volume_id,
            external_id: wire.external_id,
            plugin_id: wire.plugin_id,
            usage: csi::capability::Use {
                access_mode: wire.access_mode,
                attachment_mode: wire.attachment_mode,
                fs_type: wire.fs_type,
                mount_flags: wire.mount_flags,
            },
            read_only: wire.read_only,
            context: wire.context.into_iter().collect(),
            publish_context: wire.publish_context.into_iter().collect(),
            secrets: wire.secrets.into_iter().collect(),
        },
    }
}
