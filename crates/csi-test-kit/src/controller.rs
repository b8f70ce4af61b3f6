//! The driver's controller service: directories and marks of the storage system.

use std::fs;

use csi::v1::controller_server::Controller;
use csi::v1::controller_service_capability::rpc::Type as Rpc;
use csi::v1::controller_service_capability::{self, Type};
use csi::v1::list_volumes_response::{Entry, VolumeStatus};
use csi::v1::validate_volume_capabilities_response::Confirmed;
use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::volume_content_source::Type as Source;
use csi::v1::{self, list_snapshots_response};
use tonic::{Request, Response, Status};

use crate::Driver;
use crate::store::{copy, failed, ignore_missing};

#[tonic::async_trait]
impl Controller for Driver {
    async fn create_volume(
        &self,
        request: Request<v1::CreateVolumeRequest>,
    ) -> Result<Response<v1::CreateVolumeResponse>, Status> {
        let request = request.into_inner();
        self.control("CreateVolume", &request.name).await?;
        if request.volume_capabilities.is_empty() {
            return Err(Status::invalid_argument("volume_capabilities are missing"));
        }
        let id = format!("vol-{}", request.name);
        let directory = self.store.volume(&id)?;
        let source = request.volume_content_source.clone();
        if !directory.is_dir() {
            match source.clone().and_then(|source| source.r#type) {
                None => fs::create_dir(&directory).map_err(failed)?,
                Some(Source::Volume(source)) => {
                    let from = self.store.existing(&source.volume_id)?;
                    copy(&from, &directory).map_err(failed)?;
                }
                Some(Source::Snapshot(source)) => {
                    let from = self.store.snapshot(&source.snapshot_id)?;
                    copy(&from, &directory).map_err(failed)?;
                }
            }
        }
        let capacity = request.capacity_range.unwrap_or_default().required_bytes;
        Ok(Response::new(v1::CreateVolumeResponse {
            volume: Some(v1::Volume {
                capacity_bytes: capacity,
                volume_id: id,
                volume_context: request.parameters,
                content_source: source,
                accessible_topology: Vec::new(),
            }),
        }))
    }

    async fn delete_volume(
        &self,
        request: Request<v1::DeleteVolumeRequest>,
    ) -> Result<Response<v1::DeleteVolumeResponse>, Status> {
        let id = request.into_inner().volume_id;
        self.control("DeleteVolume", &id).await?;
        if !self.store.attached(&id)?.is_empty() {
            return Err(Status::failed_precondition("the volume is attached"));
        }
        ignore_missing(fs::remove_dir_all(self.store.volume(&id)?))?;
        Ok(Response::new(v1::DeleteVolumeResponse {}))
    }

    async fn controller_publish_volume(
        &self,
        request: Request<v1::ControllerPublishVolumeRequest>,
    ) -> Result<Response<v1::ControllerPublishVolumeResponse>, Status> {
        let request = request.into_inner();
        let (volume, node) = (&request.volume_id, &request.node_id);
        self.control("ControllerPublishVolume", volume).await?;
        self.store.existing(volume)?;
        let capability = request.volume_capability.unwrap_or_default();
        let mode = capability.access_mode.unwrap_or_default().mode();
        let is_for_one_node = matches!(mode, Mode::SingleNodeWriter | Mode::SingleNodeReaderOnly);
        let attached = self.store.attached(volume)?;
        if is_for_one_node && attached.iter().any(|other| other != node) {
            // A test looks for this line.
            self.control("DOUBLE-ATTACH", volume).await?;
            return Err(Status::failed_precondition(format!(
                "volume {volume:?} is attached to {attached:?}"
            )));
        }
        self.store.attach(volume, node)?;
        Ok(Response::new(v1::ControllerPublishVolumeResponse {
            publish_context: [("attached-to".to_owned(), node.clone())].into(),
        }))
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<v1::ControllerUnpublishVolumeRequest>,
    ) -> Result<Response<v1::ControllerUnpublishVolumeResponse>, Status> {
        let request = request.into_inner();
        self.control("ControllerUnpublishVolume", &request.volume_id)
            .await?;
        self.store.detach(&request.volume_id, &request.node_id)?;
        Ok(Response::new(v1::ControllerUnpublishVolumeResponse {}))
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<v1::ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<v1::ValidateVolumeCapabilitiesResponse>, Status> {
        let request = request.into_inner();
        self.control("ValidateVolumeCapabilities", &request.volume_id)
            .await?;
        self.store.existing(&request.volume_id)?;
        Ok(Response::new(v1::ValidateVolumeCapabilitiesResponse {
            confirmed: Some(Confirmed {
                volume_context: request.volume_context,
                volume_capabilities: request.volume_capabilities,
                parameters: request.parameters,
                ..Confirmed::default()
            }),
            message: String::new(),
        }))
    }

    async fn list_volumes(
        &self,
        request: Request<v1::ListVolumesRequest>,
    ) -> Result<Response<v1::ListVolumesResponse>, Status> {
        let request = request.into_inner();
        self.control("ListVolumes", "-").await?;
        let all = self.store.volumes()?;
        let (page, next_token) = page(all, request.max_entries, &request.starting_token)?;
        let mut entries = Vec::new();
        for id in page {
            let status = VolumeStatus {
                published_node_ids: self.store.attached(&id)?,
                volume_condition: None,
            };
            entries.push(Entry {
                volume: Some(v1::Volume {
                    volume_id: id,
                    ..v1::Volume::default()
                }),
                status: Some(status),
            });
        }
        Ok(Response::new(v1::ListVolumesResponse {
            entries,
            next_token,
        }))
    }

    async fn get_capacity(
        &self,
        _: Request<v1::GetCapacityRequest>,
    ) -> Result<Response<v1::GetCapacityResponse>, Status> {
        Err(Status::unimplemented("GetCapacity"))
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<v1::ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<v1::ControllerGetCapabilitiesResponse>, Status> {
        let mut all = vec![
            Rpc::CreateDeleteVolume,
            Rpc::ListVolumes,
            Rpc::CreateDeleteSnapshot,
            Rpc::ListSnapshots,
            Rpc::CloneVolume,
        ];
        if self.settings.attaches {
            all.push(Rpc::PublishUnpublishVolume);
        }
        let capability = |rpc: Rpc| v1::ControllerServiceCapability {
            r#type: Some(Type::Rpc(controller_service_capability::Rpc {
                r#type: rpc.into(),
            })),
        };
        Ok(Response::new(v1::ControllerGetCapabilitiesResponse {
            capabilities: all.into_iter().map(capability).collect(),
        }))
    }

    async fn create_snapshot(
        &self,
        request: Request<v1::CreateSnapshotRequest>,
    ) -> Result<Response<v1::CreateSnapshotResponse>, Status> {
        let request = request.into_inner();
        let source = &request.source_volume_id;
        self.control("CreateSnapshot", source).await?;
        let from = self.store.existing(source)?;
        let id = format!("snap-{}", request.name);
        let to = self.store.snapshot(&id)?;
        if !to.is_dir() {
            copy(&from, &to).map_err(failed)?;
            fs::write(to.join(".source"), source).map_err(failed)?;
        }
        Ok(Response::new(v1::CreateSnapshotResponse {
            snapshot: Some(snapshot(id, source.clone())),
        }))
    }

    async fn delete_snapshot(
        &self,
        request: Request<v1::DeleteSnapshotRequest>,
    ) -> Result<Response<v1::DeleteSnapshotResponse>, Status> {
        let id = request.into_inner().snapshot_id;
        self.control("DeleteSnapshot", &id).await?;
        ignore_missing(fs::remove_dir_all(self.store.snapshot(&id)?))?;
        Ok(Response::new(v1::DeleteSnapshotResponse {}))
    }

    async fn list_snapshots(
        &self,
        request: Request<v1::ListSnapshotsRequest>,
    ) -> Result<Response<v1::ListSnapshotsResponse>, Status> {
        let request = request.into_inner();
        self.control("ListSnapshots", "-").await?;
        let all = self.store.snapshots()?;
        let names = all.iter().map(|(id, _)| id.clone()).collect();
        let (page, next_token) = page(names, request.max_entries, &request.starting_token)?;
        let entries = all.into_iter().filter(|(id, _)| page.contains(id));
        Ok(Response::new(v1::ListSnapshotsResponse {
            entries: entries
                .map(|(id, source)| list_snapshots_response::Entry {
                    snapshot: Some(snapshot(id, source)),
                })
                .collect(),
            next_token,
        }))
    }

    async fn get_snapshot(
        &self,
        _: Request<v1::GetSnapshotRequest>,
    ) -> Result<Response<v1::GetSnapshotResponse>, Status> {
        Err(Status::unimplemented("GetSnapshot"))
    }

    async fn controller_expand_volume(
        &self,
        _: Request<v1::ControllerExpandVolumeRequest>,
    ) -> Result<Response<v1::ControllerExpandVolumeResponse>, Status> {
        Err(Status::unimplemented("ControllerExpandVolume"))
    }

    async fn controller_get_volume(
        &self,
        _: Request<v1::ControllerGetVolumeRequest>,
    ) -> Result<Response<v1::ControllerGetVolumeResponse>, Status> {
        Err(Status::unimplemented("ControllerGetVolume"))
    }

    async fn controller_modify_volume(
        &self,
        _: Request<v1::ControllerModifyVolumeRequest>,
    ) -> Result<Response<v1::ControllerModifyVolumeResponse>, Status> {
        Err(Status::unimplemented("ControllerModifyVolume"))
    }
}

impl Driver {
    async fn control(&self, method: &str, volume: &str) -> Result<(), Status> {
        let node = &self.settings.node_id;
        self.store.enter(node, method, volume).await
    }
}

fn snapshot(id: String, source: String) -> v1::Snapshot {
    v1::Snapshot {
        size_bytes: 0,
        snapshot_id: id,
        source_volume_id: source,
        creation_time: Some(prost_types::Timestamp {
            seconds: 1_700_000_000,
            nanos: 0,
        }),
        ready_to_use: true,
        group_snapshot_id: String::new(),
    }
}

/// Returns a page of names, and the token of the next one: its first name.
fn page(all: Vec<String>, max: i32, token: &str) -> Result<(Vec<String>, String), Status> {
    if max < 0 {
        return Err(Status::invalid_argument("max_entries is negative"));
    }
    let limit = match usize::try_from(max) {
        Ok(0) | Err(_) => all.len(),
        Ok(limit) => limit,
    };
    if !token.is_empty() && !all.iter().any(|name| name == token) {
        return Err(Status::aborted("starting_token is not known"));
    }
    let rest = all
        .into_iter()
        .skip_while(|name| !token.is_empty() && name != token);
    let mut page: Vec<String> = rest.collect();
    let more = page.split_off(limit.min(page.len()));
    Ok((page, more.into_iter().next().unwrap_or_default()))
}
