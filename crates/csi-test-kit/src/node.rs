//! The driver's node service: bind mounts of a volume's directory.

use std::fs;
use std::path::Path;

use csi::v1::node_server::Node;
use csi::v1::node_service_capability::rpc::Type as Rpc;
use csi::v1::node_service_capability::{self, Type};
use csi::v1::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetCapabilitiesRequest,
    NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse,
    NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, NodePublishVolumeRequest,
    NodePublishVolumeResponse, NodeServiceCapability, NodeStageVolumeRequest,
    NodeStageVolumeResponse, NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse,
    NodeUnstageVolumeRequest, NodeUnstageVolumeResponse,
};
use tonic::{Request, Response, Status};

use crate::Driver;
use crate::store::{bind, ignore_missing, unbind};

#[tonic::async_trait]
impl Node for Driver {
    async fn node_stage_volume(
        &self,
        request: Request<NodeStageVolumeRequest>,
    ) -> Result<Response<NodeStageVolumeResponse>, Status> {
        let request = request.into_inner();
        self.enter("NodeStageVolume", &request.volume_id).await?;
        let volume = self.store.existing(&request.volume_id)?;
        required("staging_target_path", &request.staging_target_path)?;
        if request.volume_capability.is_none() {
            return Err(Status::invalid_argument("volume_capability is missing"));
        }
        self.check_attached(&request.volume_id, &request.publish_context)?;
        bind(&volume, Path::new(&request.staging_target_path), false)?;
        Ok(Response::new(NodeStageVolumeResponse {}))
    }

    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Result<Response<NodeUnstageVolumeResponse>, Status> {
        let request = request.into_inner();
        self.enter("NodeUnstageVolume", &request.volume_id).await?;
        required("staging_target_path", &request.staging_target_path)?;
        unbind(Path::new(&request.staging_target_path))?;
        Ok(Response::new(NodeUnstageVolumeResponse {}))
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Result<Response<NodePublishVolumeResponse>, Status> {
        let request = request.into_inner();
        self.enter("NodePublishVolume", &request.volume_id).await?;
        let volume = self.store.existing(&request.volume_id)?;
        required("target_path", &request.target_path)?;
        self.check_attached(&request.volume_id, &request.publish_context)?;
        let target = Path::new(&request.target_path);
        if !target.parent().is_some_and(Path::is_dir) {
            return Err(Status::failed_precondition(
                "the directory of target_path does not exist",
            ));
        }
        if self.settings.stages {
            required("staging_target_path", &request.staging_target_path)?;
            bind(
                Path::new(&request.staging_target_path),
                target,
                request.readonly,
            )?;
        } else {
            bind(&volume, target, request.readonly)?;
        }
        Ok(Response::new(NodePublishVolumeResponse {}))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        let request = request.into_inner();
        self.enter("NodeUnpublishVolume", &request.volume_id)
            .await?;
        required("target_path", &request.target_path)?;
        let target = Path::new(&request.target_path);
        unbind(target)?;
        ignore_missing(fs::remove_dir(target))?;
        Ok(Response::new(NodeUnpublishVolumeResponse {}))
    }

    async fn node_get_volume_stats(
        &self,
        _: Request<NodeGetVolumeStatsRequest>,
    ) -> Result<Response<NodeGetVolumeStatsResponse>, Status> {
        Err(Status::unimplemented("NodeGetVolumeStats"))
    }

    async fn node_expand_volume(
        &self,
        _: Request<NodeExpandVolumeRequest>,
    ) -> Result<Response<NodeExpandVolumeResponse>, Status> {
        Err(Status::unimplemented("NodeExpandVolume"))
    }

    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        let stages = NodeServiceCapability {
            r#type: Some(Type::Rpc(node_service_capability::Rpc {
                r#type: Rpc::StageUnstageVolume.into(),
            })),
        };
        Ok(Response::new(NodeGetCapabilitiesResponse {
            capabilities: Vec::from_iter(self.settings.stages.then_some(stages)),
        }))
    }

    async fn node_get_info(
        &self,
        _: Request<NodeGetInfoRequest>,
    ) -> Result<Response<NodeGetInfoResponse>, Status> {
        Ok(Response::new(NodeGetInfoResponse {
            node_id: self.settings.node_id.clone(),
            max_volumes_per_node: self.settings.max_volumes,
            accessible_topology: None,
        }))
    }
}

impl Driver {
    async fn enter(&self, method: &str, volume: &str) -> Result<(), Status> {
        let node = &self.settings.node_id;
        self.store.enter(node, method, volume).await
    }

    /// A volume that is not attached to this node has no device here.
    fn check_attached(
        &self,
        volume: &str,
        publish_context: &std::collections::HashMap<String, String>,
    ) -> Result<(), Status> {
        if !self.settings.attaches {
            return Ok(());
        }
        let node = &self.settings.node_id;
        let is_attached = self.store.attached(volume)?.contains(node);
        if !is_attached || publish_context.get("attached-to") != Some(node) {
            return Err(Status::failed_precondition(format!(
                "volume {volume:?} is not attached to node {node:?}"
            )));
        }
        Ok(())
    }
}

fn required(field: &str, value: &str) -> Result<(), Status> {
    if value.is_empty() {
        return Err(Status::invalid_argument(format!("{field} is missing")));
    }
    Ok(())
}
