//! `kafila.v1.CsiVolumes`.

use admission::cluster::csi::detach;
use gateway_core::{Error, Step};
use listing::{NotFound, find};
use model::{CsiAttachmentKey, CsiVolume, CsiVolumeKey, Namespace};
use placement::csi::holders;
use proto::v1::csi_volumes_server::CsiVolumes;
use proto::{CsiVolumeRead, v1};
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::query::{Api, List, Read, open, reply};
use crate::reads::index;

/// Users and plugins follow from allocations, jobs and nodes.
const TABLES: [Table; 3] = [Table::Volumes, Table::Nodes, Table::Allocs];

#[tonic::async_trait]
impl CsiVolumes for Api {
    async fn list(
        &self,
        request: Request<v1::ListCsiVolumesRequest>,
    ) -> Result<Response<v1::ListCsiVolumesResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<CsiVolumeKey>::new(request.options, timeout)?;
        let answer = |snapshot: &Snapshot| {
            let node_id = match request.node_id.as_str() {
                "" => None,
                text => Some(find::node(snapshot, text)?),
            };
            let is_on_node = |volume: &CsiVolume| {
                let key = volume.key();
                node_id.is_none_or(|node_id| {
                    let mut users = holders::of(snapshot, &key);
                    users.any(|(view, _)| view.alloc.node_id == node_id)
                })
            };
            let plugin_id = &request.plugin_id;
            let volumes = snapshot.csi_volumes().filter(|volume| {
                let value = &volume.value;
                list.has_namespace(&value.namespace)
                    && list.has_name(&value.id)
                    && (plugin_id.is_empty() || value.plugin_id == *plugin_id)
                    && is_on_node(value)
            });
            let keyed = volumes.map(|volume| (volume.value.key(), volume));
            Ok(list.page(keyed, |volume| api_view::csi::volume(snapshot, volume)))
        };
        let (volumes, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListCsiVolumesResponse { meta, volumes }))
    }

    async fn get(
        &self,
        request: Request<v1::GetCsiVolumeRequest>,
    ) -> Result<Response<v1::GetCsiVolumeResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let namespaces = read.namespaces();
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &TABLES);
        let answer = |snapshot: &Snapshot| {
            let volume = find::csi_volume(snapshot, &namespaces, &request.volume_id)?;
            let key = volume.value.key();
            let attachments = snapshot.csi_attachments_of(&key);
            let attachments = attachments.map(|(key, stored)| (key, &stored.value).into());
            let shown = v1::GetCsiVolumeResponse {
                meta: None,
                volume: Some(api_view::csi::volume(snapshot, volume)),
                users: api_view::csi::users(snapshot, volume),
                attachments: attachments.collect(),
            };
            Ok((shown, String::new()))
        };
        let (response, meta) = self.query(&read, &TABLES, index, answer).await?;
        Ok(Response::new(v1::GetCsiVolumeResponse { meta, ..response }))
    }

    async fn register(
        &self,
        request: Request<v1::RegisterCsiVolumeRequest>,
    ) -> Result<Response<v1::RegisterCsiVolumeResponse>, Status> {
        let wanted = request.into_inner().volume;
        let registered = Box::pin(async {
            let wanted = read_volume(wanted, false)?;
            self.gateway.csi.register(&wanted).await
        });
        reply(
            registered
                .await
                .map(|volume| v1::RegisterCsiVolumeResponse {
                    volume: Some(volume),
                }),
        )
    }

    async fn deregister(
        &self,
        request: Request<v1::DeregisterCsiVolumeRequest>,
    ) -> Result<Response<v1::DeregisterCsiVolumeResponse>, Status> {
        let request = request.into_inner();
        let key = key(&request.namespace, &request.volume_id);
        let index = Box::pin(self.gateway.csi.deregister(&key, request.force)).await?;
        info!(
            volume_id = request.volume_id,
            index, "CSI volume deregistered"
        );
        Ok(Response::new(v1::DeregisterCsiVolumeResponse {
            index,
            volume_id: request.volume_id,
        }))
    }

    async fn create(
        &self,
        request: Request<v1::CreateCsiVolumeRequest>,
    ) -> Result<Response<v1::CreateCsiVolumeResponse>, Status> {
        let wanted = request.into_inner().volume;
        let created = Box::pin(async {
            let wanted = read_volume(wanted, true)?;
            self.gateway.csi.create(wanted).await
        });
        let volume = Some(created.await?);
        Ok(Response::new(v1::CreateCsiVolumeResponse { volume }))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteCsiVolumeRequest>,
    ) -> Result<Response<v1::DeleteCsiVolumeResponse>, Status> {
        let request = request.into_inner();
        let key = key(&request.namespace, &request.volume_id);
        let index = Box::pin(self.gateway.csi.delete(&key)).await?;
        info!(volume_id = request.volume_id, index, "CSI volume deleted");
        Ok(Response::new(v1::DeleteCsiVolumeResponse {
            index,
            volume_id: request.volume_id,
        }))
    }

    async fn detach(
        &self,
        request: Request<v1::DetachCsiVolumeRequest>,
    ) -> Result<Response<v1::DetachCsiVolumeResponse>, Status> {
        let request = request.into_inner();
        let volume = key(&request.namespace, &request.volume_id);
        let decide = |snapshot: &Snapshot| {
            let key = CsiAttachmentKey {
                volume: volume.clone(),
                node_id: find::node(snapshot, &request.node_id)?,
            };
            Ok(match detach::request(snapshot, &key)? {
                Some(write) => Step::Commit {
                    writes: vec![write],
                    answer: Box::new(|revision| revision),
                },
                None => Step::IfFresh(snapshot.index()),
            })
        };
        let what = || format!("volume {}", request.volume_id);
        let index = Box::pin(self.gateway.core.execute(what, decide)).await?;
        Ok(Response::new(v1::DetachCsiVolumeResponse { index }))
    }

    async fn list_external(
        &self,
        request: Request<v1::ListExternalCsiVolumesRequest>,
    ) -> Result<Response<v1::ListExternalCsiVolumesResponse>, Status> {
        let answer = Box::pin(self.gateway.csi.list_external(request.into_inner())).await;
        reply(answer)
    }

    async fn create_snapshot(
        &self,
        request: Request<v1::CreateCsiSnapshotRequest>,
    ) -> Result<Response<v1::CreateCsiSnapshotResponse>, Status> {
        let answer = Box::pin(self.gateway.csi.create_snapshot(request.into_inner())).await;
        reply(answer)
    }

    async fn delete_snapshot(
        &self,
        request: Request<v1::DeleteCsiSnapshotRequest>,
    ) -> Result<Response<v1::DeleteCsiSnapshotResponse>, Status> {
        let answer = Box::pin(self.gateway.csi.delete_snapshot(request.into_inner())).await;
        reply(answer)
    }

    async fn list_snapshots(
        &self,
        request: Request<v1::ListCsiSnapshotsRequest>,
    ) -> Result<Response<v1::ListCsiSnapshotsResponse>, Status> {
        let answer = Box::pin(self.gateway.csi.list_snapshots(request.into_inner())).await;
        reply(answer)
    }

    async fn list_plugins(
        &self,
        request: Request<v1::ListCsiPluginsRequest>,
    ) -> Result<Response<v1::ListCsiPluginsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<String>::new(request.options, timeout)?;
        let answer = |snapshot: &Snapshot| {
            let ids = snapshot.csi_plugin_ids().filter(|id| list.has_name(id));
            let plugins = ids.filter_map(|id| {
                let plugin = api_view::csi::plugin(snapshot, id)?;
                Some((id.to_string(), plugin))
            });
            Ok(list.page(plugins, |plugin| plugin))
        };
        let (plugins, meta) = Api::list(self, &list, &[Table::Nodes], answer).await?;
        Ok(Response::new(v1::ListCsiPluginsResponse { meta, plugins }))
    }

    async fn get_plugin(
        &self,
        request: Request<v1::GetCsiPluginRequest>,
    ) -> Result<Response<v1::GetCsiPluginResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let tables = [Table::Nodes];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let id = find::csi_plugin(snapshot, &request.plugin_id)?;
            let plugin = api_view::csi::plugin(snapshot, id);
            let plugin = plugin.ok_or_else(|| NotFound::none("plugin", id))?;
            Ok((plugin, String::new()))
        };
        let (plugin, meta) = self.query(&read, &tables, index, answer).await?;
        Ok(Response::new(v1::GetCsiPluginResponse {
            meta,
            plugin: Some(plugin),
        }))
    }
}

fn read_volume(wire: Option<v1::CsiVolume>, is_new: bool) -> Result<CsiVolume, Error> {
    let Some(wire) = wire else {
        let message = "missing: want the volume, as in its file";
        return Err(Error::invalid_field("volume", message));
    };
    let read = CsiVolumeRead::from(wire).checked(is_new);
    read.map_err(|mut errors| {
        for error in &mut errors.0 {
            error.field = format!("volume.{}", error.field);
        }
        Error::from(errors)
    })
}

fn key(namespace: &str, volume_id: &str) -> CsiVolumeKey {
    CsiVolumeKey::new(Namespace::or_default(namespace), volume_id)
}
